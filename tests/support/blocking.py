"""Goal runners as others write them: one blocks its thread, one does not stop, one uses all of its context."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from toolcrib.activities.context import LeaseContext
from toolcrib.activities.runners.shell import ShellRunner


class Sleeping:
    """The goal is `block SECONDS` or `await SECONDS`: one holds up its loop all that time, the other does not."""

    async def run(self, goal: str, context: LeaseContext) -> str:
        """Sleep."""
        how, seconds = goal.split()
        if how == "block":
            time.sleep(float(seconds))  # noqa: ASYNC251 - that is the point
        else:
            await asyncio.sleep(float(seconds))
        return threading.current_thread().name


class Stuck:
    """Blocks, or swallows its cancellation, until the test lets it go; goals must be unique."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._gates: dict[str, threading.Event] = {}

    async def run(self, goal: str, context: LeaseContext) -> str:
        """Stay: a goal that begins with `block` blocks, others are deaf, and `go` returns at once."""
        self.begun.append(goal)
        gate = self._gate(goal)
        if goal.startswith("block"):
            gate.wait()
        while not goal.startswith("go") and not gate.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return goal

    def let_go(self, goal: str) -> None:
        """Let the run of `goal` return."""
        self._gate(goal).set()

    def _gate(self, goal: str) -> threading.Event:
        return self._gates.setdefault(goal, threading.Event())


class Plugged(ShellRunner):
    """A runner of another's that uses what a lease offers: progress, guard, folders, environment."""

    async def run(self, goal: str, context: LeaseContext) -> Any:
        """Run the goal by a shell, and say so."""
        context.progress(0.5, "half way")
        (context.artifacts / "note").write_text(goal, encoding="utf-8")
        return await super().run(goal, context)


stuck = Stuck()
SLEEPING = "support.blocking:Sleeping"
STUCK = "support.blocking:stuck"
PLUGGED = "support.blocking:Plugged"

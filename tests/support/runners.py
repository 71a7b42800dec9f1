"""Runners that tests plug into their hosts, as `support.runners:controlled`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from support.lab import eventually
from toolcrib.activities.context import LeaseContext


class Controlled:
    """A goal or workflow runner whose every run waits for the test to say how it ends. Goals must be unique."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, LeaseContext]] = []
        self.inputs: dict[str, Mapping[str, Any]] = {}
        self.cancelled: list[str] = []
        self._ends: dict[str, Future[Any]] = {}

    async def run(self, work: str, *rest: Any) -> Any:
        """Be a goal runner (goal, context) and a workflow runner (workflow, inputs, context)."""
        context: LeaseContext = rest[-1]
        self.calls.append((work, context))
        if len(rest) > 1:
            self.inputs[work] = rest[0]
        try:
            return await asyncio.shield(asyncio.wrap_future(self._end(work)))
        except asyncio.CancelledError:
            self.cancelled.append(work)
            raise

    async def context(self, work: str) -> LeaseContext:
        """Return the context of the newest run of `work`, as soon as there is one."""

        async def contexts() -> list[LeaseContext]:
            return [context for call, context in self.calls if call == work]

        return (await eventually(contexts, bool))[-1]

    def started(self, work: str) -> int:
        """Return how often `work` was started."""
        return sum(call == work for call, _ in self.calls)

    def finish(self, work: str, result: Any = None) -> None:
        """Let all runs of `work` return `result`."""
        self._end(work).set_result(result)

    def fail(self, work: str, error: Exception) -> None:
        """Let all runs of `work` raise `error`."""
        self._end(work).set_exception(error)

    def _end(self, work: str) -> Future[Any]:
        return self._ends.setdefault(work, Future())


controlled = Controlled()
CONTROLLED = "support.runners:controlled"


class Reporting:
    """A goal runner that reports progress twenty times as fast as it can, and returns."""

    async def run(self, goal: str, context: LeaseContext) -> str:
        """Report from 0.05 to 1.0."""
        for step in range(1, 21):
            context.progress(step / 20, f"step {step} of {goal}")
            await asyncio.sleep(0)
        return goal


REPORTING = "support.runners:Reporting"


class Noting:
    """A goal runner that notes the goals in the order in which they were started, and does nothing else."""

    def __init__(self) -> None:
        self.goals: list[str] = []

    async def run(self, goal: str, context: LeaseContext) -> None:
        """Note the goal."""
        self.goals.append(goal)


noting = Noting()
NOTING = "support.runners:noting"


class Talking:
    """A goal runner that writes the goal into the log of its attempt, as a line."""

    async def run(self, goal: str, context: LeaseContext) -> None:
        """Say it."""
        context.log.line(goal)


TALKING = "support.runners:Talking"


class Parting:
    """A goal runner that begins, and when it is cancelled waits for a moment before its last words."""

    def __init__(self) -> None:
        self.may_speak: Future[None] = Future()

    async def run(self, goal: str, context: LeaseContext) -> None:
        """Say the goal, and then wait to be cancelled, and to be let speak."""
        context.log.line(goal)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.wrap_future(self.may_speak)
            context.log.line("last words")


parting = Parting()
PARTING = "support.runners:parting"


class Straying:
    """A goal runner that starts a process beside the guard, which leaves its session, and returns its id."""

    async def run(self, goal: str, context: LeaseContext) -> int:
        """Start it, and look after it no more."""
        process = await asyncio.create_subprocess_exec(
            "setsid", "sleep", "600", env=context.environment, stdin=asyncio.subprocess.DEVNULL
        )
        return process.pid


STRAYING = "support.runners:Straying"

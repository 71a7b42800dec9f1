"""The goal runner `exec`: a command that the host's file fixes gets the goal, and no shell reads it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any, Final

import structlog

from toolcrib.activities.context import LeaseContext
from toolcrib.activities.guard import SpawnFailed
from toolcrib.activities.runners.command import Command
from toolcrib.activities.runners.template import GOAL, GOAL_FILE, checked_command, checked_word, filled, places
from toolcrib.activities.runners.verdict import run_to_verdict

GOAL_NAME: Final = "goal.txt"
MAX_ARGUMENT_BYTES: Final = 128 * 1024 - 1
"""What the kernel takes as one argument."""

_log = structlog.get_logger(__name__)


class ExecRunner:
    """Runs one command for every goal: its places filled, in the lease's folder, with the lease's environment.

    The goal goes where the command has a place for it, else it is what the command reads on standard input. Result,
    failure and lines of progress are those of `shell`.
    """

    def __init__(self, command: Sequence[str]) -> None:
        """Raises InvalidRequest if the command is empty or has unknown places."""
        self._words = checked_command([checked_word(word, "exec") for word in command], "exec")
        self._places = places(*self._words)
        if not shutil.which(self._words[0]):
            _log.warning("the command of exec is not here; goals will fail", command=self._words[0])

    async def run(self, goal: str, context: LeaseContext) -> Any:
        """Run the command with the goal; see `run_to_verdict`.

        Raises:
            SpawnFailed: it could not be started; this fails the task, and is not tried again.
        """
        data = goal.encode(errors="surrogateescape")
        if GOAL_FILE in self._places:
            (context.folder / GOAL_NAME).write_bytes(data)
        values = _values(goal, context)
        argv = [filled(word, values) for word in self._words]
        if GOAL in self._places:
            self._check_argument(argv)
        stdin = None if {GOAL, GOAL_FILE} & {*self._places} else data
        return await run_to_verdict(Command(argv=argv, stdin=stdin), context)

    def _check_argument(self, argv: Sequence[str]) -> None:
        """Refuse a goal that no command can have as an argument, with what the host can do about it."""
        size = max(len(argument.encode(errors="replace")) for argument in argv)
        if size > MAX_ARGUMENT_BYTES:
            problem = f"with the goal, an argument has {size:,} bytes, and the limit is {MAX_ARGUMENT_BYTES:,}"
        elif any("\0" in argument for argument in argv):
            problem = "the goal has a NUL character, which no argument can have"
        else:
            return
        raise SpawnFailed(
            f"could not start {self._words[0]}: {problem}",
            hint="In the host's file, have exec use {goal_file}, or no place for the goal: then it comes on stdin.",
        )


def _values(goal: str, context: LeaseContext) -> dict[str, str]:
    return {
        GOAL: goal,
        GOAL_FILE: str(context.folder / GOAL_NAME),
        "task_id": context.lease.task_id,
        "attempt": str(context.attempt),
        "device_id": context.device.id,
        "host_id": context.lease.host_id,
        "artifacts": str(context.artifacts),
    }

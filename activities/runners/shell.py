"""The goal runner `shell`: the goal is a script for /bin/sh."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from toolcrib.activities.context import LeaseContext
from toolcrib.activities.runners.command import GRACE, Command
from toolcrib.activities.runners.verdict import run_to_verdict

SCRIPT: Final = "goal.sh"


class ShellRunner:
    """Runs the goal as a script, in the lease's folder, with the lease's environment and no input.

    A line such as `::toolcrib progress 0.4 copying` says how far the work is, and is not kept: see docs/runners.md.
    """

    grace: ClassVar[float] = GRACE
    """Seconds between SIGTERM and SIGKILL when it is cancelled."""

    async def run(self, goal: str, context: LeaseContext) -> Any:
        """Run the goal; see `run_to_verdict`."""
        # A script, since one argument may have no more than 128 KiB.
        (context.folder / SCRIPT).write_bytes(goal.encode(errors="surrogateescape"))
        return await run_to_verdict(Command(argv=["/bin/sh", SCRIPT]), context, grace=self.grace)

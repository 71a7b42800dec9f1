"""The bound: one workflow with one activity that does nothing."""

from __future__ import annotations

from datetime import timedelta

from temporalio import activity, workflow

QUEUE = "bench-bare"


@activity.defn
async def nothing() -> None:
    """Do nothing."""


@workflow.defn
class Bare:
    """What every task costs at the least."""

    @workflow.run
    async def run(self) -> None:
        """Run one activity."""
        await workflow.execute_activity(nothing, start_to_close_timeout=timedelta(seconds=30))

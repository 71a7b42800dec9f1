"""A workflow that gives a lease back to a pool, and activities by which that takes too long at first."""

from __future__ import annotations

import asyncio

from temporalio import activity, workflow

from toolcrib.scheduling.messages import SettleKind, Settlement
from toolcrib.workflows.contract import SETTLE
from toolcrib.workflows.pool_calls import AT_ONCE, settle


@activity.defn(name=SETTLE)
async def settle_slowly(pool: str, message: Settlement) -> str:
    """Take longer than a local activity may, and return who did it."""
    if not activity.info().is_local:
        return "patiently"
    await asyncio.sleep(2 * AT_ONCE.total_seconds())
    return "at once"


@workflow.defn
class Settling:
    """Settles once."""

    @workflow.run
    async def run(self) -> str:
        """Return who did it."""
        return await settle("lab", Settlement(kind=SettleKind.WITHDRAW, task_id="task-1"))

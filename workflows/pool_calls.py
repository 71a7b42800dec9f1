"""How a workflow reaches a pool: a local activity that may take two seconds, and past that one with retries.

A call that has begun is finished even if the workflow is cancelled meanwhile; the cancellation is raised afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import FailureError

from toolcrib.scheduling.messages import Admission, HostSilent, QueueEntry, Settlement
from toolcrib.scheduling.names import LINK_QUEUE
from toolcrib.workflows.contract import ADMIT, SETTLE, SILENCE

AT_ONCE: Final = timedelta(seconds=2)
"""While a local activity runs, its workflow answers neither updates nor queries."""
ONE_TRY: Final = timedelta(seconds=10)
"""A try may be lost with the worker that had it; a lease that comes meanwhile must not miss its claim window."""
ONCE: Final = RetryPolicy(maximum_attempts=1)
LOCAL_FAILURE: Final = FailureError
"""How a local activity fails: by a timeout as an ActivityError when it runs and as a TimeoutError when it is replayed,
by an error of its own as it is."""


async def admit(pool: str, entry: QueueEntry) -> Admission:
    """Ask `pool` for a place in its queue; its answer may be a refusal."""
    answer: Admission = await _whole(_call(ADMIT, [pool, entry], Admission))
    return answer


async def settle(pool: str, message: Settlement) -> str:
    """Tell `pool` what became of a lease or of a place in the queue, and return the id of the run that told it."""
    return str(await _whole(_call(SETTLE, [pool, message], str)))


async def silence(pool: str, message: HostSilent) -> None:
    """Tell `pool` that a host no longer heartbeats."""
    await _whole(_call(SILENCE, [pool, message], None))


async def _whole(call: Any) -> Any:
    running = asyncio.create_task(call)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await running
        raise


async def _call(name: str, args: Sequence[Any], result_type: type | None) -> Any:
    try:
        return await workflow.execute_local_activity(
            name, args=args, result_type=result_type, start_to_close_timeout=AT_ONCE, retry_policy=ONCE
        )
    except LOCAL_FAILURE:
        workflow.logger.info("the pool did not answer at once; trying on", extra={"call": name})
    return await workflow.execute_activity(
        name, args=args, result_type=result_type, task_queue=LINK_QUEUE, start_to_close_timeout=ONE_TRY
    )

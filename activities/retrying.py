"""How calls to Temporal are made again: with jitter, and for a bounded time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from tenacity import AsyncRetrying, retry_if_exception, stop_before_delay, stop_never, wait_random_exponential

from toolcrib.workflows.failures import cannot_replay

CLOSING: Final = ("AcceptedUpdateCompletedWorkflow", "WorkflowNotReady")
"""The failures of an update whose workflow was just going on in a new run."""

REPLAY_PAUSES: Final = (0.2, 1.0)
"""Seconds between two tries."""

Result = TypeVar("Result")


async def retried(
    call: Callable[[], Awaitable[Result]],
    may_pass: Callable[[BaseException], bool],
    *,
    patience: float | None,
    longest_pause: float,
) -> Result:
    """Return what `call` returns, making it again while what it raises `may_pass`.

    No call begins when `patience` is over, and `longest_pause` bounds the time between two calls, in seconds. When no
    further call may be made, the last error is raised.
    """
    begin = time.monotonic()
    call = _cancellable(call)
    try:
        return await call()
    except Exception as error:
        if not may_pass(error):
            raise
        failed = [error]

    async def again() -> Result:
        # The first call is made without tenacity, which costs more than it; here its failure is taken note of.
        if failed:
            raise failed.pop()
        return await call()

    stop = stop_never if patience is None else stop_before_delay(patience - (time.monotonic() - begin))
    wait = wait_random_exponential(multiplier=0.1, max=longest_pause)
    return await AsyncRetrying(stop=stop, wait=wait, retry=retry_if_exception(may_pass), reraise=True)(again)


def _cancellable(call: Callable[[], Awaitable[Result]]) -> Callable[[], Awaitable[Result]]:
    """Return `call` with its cancellation raised as such: an update of the SDK makes an error of it, to be retried."""

    async def cancellable() -> Result:
        try:
            return await call()
        except WorkflowUpdateRPCTimeoutOrCancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise asyncio.CancelledError from None
            raise

    return cancellable


def is_unanswered(error: BaseException) -> bool:
    """Return whether a call did not get through to a workflow, or its answer did not come back."""
    if isinstance(error, WorkflowUpdateFailedError):
        return isinstance(error.__cause__, ApplicationError) and error.__cause__.type in CLOSING
    if isinstance(error, WorkflowQueryRejectedError):
        return error.status is WorkflowExecutionStatus.CONTINUED_AS_NEW
    return isinstance(error, RPCError | WorkflowUpdateRPCTimeoutOrCancelledError)


async def put_again(query: Callable[[], Awaitable[Result]]) -> Result:
    """Return what a query returns, or whatever else may fail by a workflow's replay, which is tried three times.

    Under load the SDK fails a query now and then that comes when it takes a workflow up again whose local activity is
    under way, and answers the next one. A workflow of another version fails each.
    """
    for pause in REPLAY_PAUSES:
        try:
            return await query()
        except WorkflowQueryFailedError as error:
            if cannot_replay("it", error) is None:
                raise
        await asyncio.sleep(pause)
    return await query()

"""How calls to Temporal are made again: with jitter, and for a bounded time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from tenacity import AsyncRetrying, retry_if_exception, stop_before_delay, stop_never, wait_random_exponential

CLOSING: Final = ("AcceptedUpdateCompletedWorkflow", "WorkflowNotReady")
"""The failures of an update whose workflow was just going on in a new run."""

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

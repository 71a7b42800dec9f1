"""Which refusals of Temporal a client waits out, unseen by its user."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import stamina
from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

PATIENCE: Final = 30.0
"""Seconds."""
_PASSING: Final = (
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.ABORTED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.INTERNAL,
)
_CLOSING: Final = ("AcceptedUpdateCompletedWorkflow", "WorkflowNotReady")
"""The pool was just going on in a new run."""

Result = TypeVar("Result")


async def patiently(call: Callable[[], Awaitable[Result]]) -> Result:
    """Return what `call` returns, making it again with jitter while what stands in the way may pass.

    A pool takes only so many calls at the same time, and a hundred clients may well come at once.
    """
    async for attempt in stamina.retry_context(
        on=_may_pass, attempts=None, timeout=PATIENCE, wait_initial=0.05, wait_max=2.0, wait_jitter=0.2
    ):
        with attempt:
            return await call()
    raise AssertionError("stamina returns or raises")


def _may_pass(error: Exception) -> bool:
    if isinstance(error, RPCError):
        return error.status in _PASSING
    if isinstance(error, WorkflowUpdateFailedError):
        return isinstance(error.cause, ApplicationError) and error.cause.type in _CLOSING
    return isinstance(error, WorkflowUpdateRPCTimeoutOrCancelledError)

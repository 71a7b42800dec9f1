"""Which refusals of Temporal a client waits out, unseen by its user."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from temporalio.service import RPCError, RPCStatusCode

from toolcrib.activities.retrying import is_unanswered, retried

PATIENCE: Final = 30.0
"""Seconds."""
_PASSING: Final = (
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.ABORTED,
    RPCStatusCode.FAILED_PRECONDITION,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.INTERNAL,
)

Result = TypeVar("Result")


async def patiently(call: Callable[[], Awaitable[Result]], patience: float = PATIENCE) -> Result:
    """Return what `call` returns, making it again with jitter for `patience` seconds while what hinders it may pass.

    A pool takes only so many calls at the same time, and a hundred clients may well come at once.
    """
    return await retried(call, may_pass, patience=patience, longest_pause=2.0)


def may_pass(error: BaseException) -> bool:
    """Return whether what hinders a call may be over soon."""
    if isinstance(error, RPCError):
        return error.status in _PASSING
    return is_unanswered(error)

"""What a failed call to a connected server means, and what helps."""

from __future__ import annotations

from typing import Final

from temporalio.client import WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.exceptions import TemporalError
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.scheduling.errors import NoConnection, ToolcribError, UnknownTask, WaitTimeout
from toolcrib.worker.connection_faults import NotUpYet

MAX_QUOTED: Final = 200

_REFUSED = {RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.PERMISSION_DENIED}
_LATE = {RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED}
_SCHEDULER = "Is a scheduler running? See: toolcrib doctor"


def explain_call(error: TemporalError) -> ToolcribError:
    """Return the error to tell people instead of `error`, with which a call to a workflow or the server ended."""
    if isinstance(error, RPCError):
        return explain_rpc(error)
    if isinstance(error, WorkflowUpdateRPCTimeoutOrCancelledError):
        return WaitTimeout("no answer in time", hint=_SCHEDULER)
    cause = error.__cause__ or error
    return ToolcribError(f"the call failed: {_quoted(str(cause))}", hint=_SCHEDULER)


def explain_rpc(error: RPCError) -> ToolcribError:
    """Return the error to tell people instead of `error`."""
    text = _quoted(error.message)
    if error.status in _REFUSED:
        hint = "Check TEMPORAL_API_KEY, the client certificate and the namespace's permissions"
        return NoConnection(f"the Temporal server does not permit the call: {text}", hint=hint)
    if error.status is RPCStatusCode.UNAVAILABLE:
        return NotUpYet(f"the Temporal server cannot be reached: {text}", hint="Wait until it is up, and try again")
    if error.status in _LATE:
        return WaitTimeout(f"no answer in time: {text}", hint=_SCHEDULER)
    if error.status is RPCStatusCode.NOT_FOUND:
        return UnknownTask(f"not found: {text}", hint="See: toolcrib list")
    if error.status is RPCStatusCode.RESOURCE_EXHAUSTED:
        return ToolcribError(f"the Temporal server is busy: {text}", hint="Try again in a moment")
    name = error.status.name.lower().replace("_", " ")
    return ToolcribError(f"the Temporal server answered {name}: {text}", hint="See: toolcrib doctor")


def _quoted(text: str) -> str:
    return " ".join(text.split())[:MAX_QUOTED]

"""toolcrib's errors as Temporal failures, and back. The failure's type is the error's code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from temporalio.exceptions import ApplicationError

from toolcrib.scheduling.errors import ERRORS_BY_CODE, CannotReplay, ErrorBody, ToolcribError, from_body

_REPLAY_FAULT: Final = "TMPRL1100"
"""Temporal's own name for it."""


def to_failure(error: ToolcribError | ErrorBody, result: Any = None) -> ApplicationError:
    """Return `error` as a failure that Temporal does not retry; `result` is kept beside it."""
    body = error.body if isinstance(error, ToolcribError) else error
    return ApplicationError(body.message, {"hint": body.hint, "result": result}, type=body.code, non_retryable=True)


def refusal_in(error: BaseException) -> ToolcribError | None:
    """Return the error of ours with which an update was refused; None if something else went wrong with it."""
    cause = error.__cause__
    return from_failure(cause) if isinstance(cause, ApplicationError) and cause.type in ERRORS_BY_CODE else None


@contextmanager
def told_as_failures() -> Iterator[None]:
    """Raise the errors of ours that the block raises as failures, which is what Temporal hands to a caller.

    Raises:
        ApplicationError: as `to_failure`.
    """
    try:
        yield
    except ToolcribError as error:
        raise to_failure(error) from None


def cannot_replay(what: str, error: BaseException) -> CannotReplay | None:
    """Return the error for a workflow whose query failed with `error`, if that was because it could not be replayed."""
    return CannotReplay(f"the scheduler cannot replay {what}: {error}") if _REPLAY_FAULT in str(error) else None


def from_failure(failure: ApplicationError) -> ToolcribError:
    """Return the error that `to_failure` made into `failure`."""
    details = failure.details[0] if failure.details and isinstance(failure.details[0], dict) else {}
    return from_body(ErrorBody(code=failure.type or "unexpected", message=failure.message, hint=details.get("hint")))

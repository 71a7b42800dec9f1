"""A task that runs elsewhere: it is running from the start, takes no slot, and its caller says how it goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, field_validator

from toolcrib.scheduling.errors import ErrorBody, InvalidRequest
from toolcrib.scheduling.markdown import as_is, labelled
from toolcrib.scheduling.messages import Progress
from toolcrib.scheduling.names import DEFAULT_POOL, checked_name
from toolcrib.scheduling.progress import is_encodable
from toolcrib.scheduling.request import MAX_RESULT_BYTES, checked_json, checked_line, reworded
from toolcrib.scheduling.task import Status, moved
from toolcrib.scheduling.validation import validated
from toolcrib.scheduling.views import STATE_OF, TaskView, moment

MAX_ERROR_LENGTH = 4_000


class ExternalRequest(BaseModel):
    """What is registered: a name, and perhaps a group. It needs no device, and so no constraints."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    pool: str = DEFAULT_POOL
    """The pool among whose tasks it is listed."""
    group_id: str | None = None
    group_name: str | None = None

    @field_validator("name", "group_id", "group_name")
    @classmethod
    def _is_a_line(cls, value: str | None) -> str | None:
        return None if value is None else checked_line(value)

    @field_validator("pool")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        return reworded(checked_name, value, "pool")


@dataclass(frozen=True, kw_only=True)
class ExternalEnd:
    """How its caller says that it ended."""

    outcome: Literal["done", "failed"]
    result: Any = None
    """With `done`: a JSON value."""
    message: str | None = None
    """With `failed`: why."""


@dataclass(kw_only=True)
class ExternalRecord:
    """One task that runs elsewhere. Times are unix seconds."""

    task_id: str
    request: ExternalRequest
    created_at: float
    status: Status = Status.DISPATCHED
    progress: float | None = None
    message: str | None = None
    finished_at: float | None = None
    result: Any = None
    error: ErrorBody | None = None

    @property
    def ended(self) -> bool:
        """Whether it is over; nothing that is said of it later counts."""
        return self.status is not Status.DISPATCHED

    def progressed(self, report: Progress) -> None:
        """Take note of how far it is; what is out of range, or comes after the end, is ignored."""
        if not self.ended and 0 <= report.value <= 1:
            self.progress, self.message = report.value, report.message

    def end(self, end: ExternalEnd, now: float) -> None:
        """End it as its caller says; the first end stands."""
        if self.ended:
            return
        if end.outcome == "done":
            self.status, self.result, self.progress = moved(self.status, Status.DONE), end.result, 1.0
        else:
            self.fail(ErrorBody(code="task_failed", message=end.message or "it failed"), now)
        self.finished_at = now

    def fail(self, error: ErrorBody, now: float) -> None:
        """End it as failed."""
        self.status = moved(self.status, Status.FAILED)
        self.error, self.message, self.finished_at = error, error.message, now

    def cancel(self, now: float) -> None:
        """End it because somebody asked for that; one that has ended stays as it is."""
        if not self.ended:
            self.status, self.finished_at = moved(self.status, Status.CANCELLED), now

    @property
    def view(self) -> TaskView:
        """The task as people and programs see it."""
        return TaskView(
            id=self.task_id,
            name=self.request.name,
            status=self.status.value,
            state=STATE_OF[self.status],
            pool=self.request.pool,
            priority=3,
            progress=self.progress,
            message=self.message,
            group_id=self.request.group_id,
            group_name=self.request.group_name,
            created_at=moment(self.created_at),
            started_at=moment(self.created_at),
            finished_at=moment(self.finished_at),
            result=self.result,
            error=self.error,
        )

    @property
    def details(self) -> str:
        """The task in a few lines of Markdown, for the Temporal Web UI."""
        lines = [
            labelled("task", self.request.name),
            labelled("status", self.status),
            labelled("pool", self.request.pool),
        ]
        if self.progress is not None:
            lines.append(labelled("progress", f"{self.progress:.0%} {self.message or ''}"))
        if self.error is not None:
            lines.append(labelled("error", self.error.message))
        return as_is(lines)


CARRIED = TypeAdapter(ExternalRecord)
"""How a record goes on in a new run of its workflow."""


def parse_external(data: Any) -> ExternalRequest:
    """Return `data`, any JSON value, as what is to be registered.

    Raises:
        InvalidRequest: it is not; the message names the field.
    """
    if not isinstance(data, dict):
        raise InvalidRequest('the input is not a JSON object such as {"name": "nightly backup"}')
    return validated(ExternalRequest, data)


def checked_end(end: ExternalEnd) -> ExternalEnd:
    """Return `end` if it can be kept.

    Raises:
        InvalidRequest: the result is not JSON or too large, or the message is too long or no text that can be sent.
    """
    message = end.message
    if message is not None and (len(message) > MAX_ERROR_LENGTH or not is_encodable(message)):
        raise InvalidRequest(f"message: it is no text of at most {MAX_ERROR_LENGTH} characters")
    try:
        checked_json(end.result, MAX_RESULT_BYTES)
    except ValueError as error:
        raise InvalidRequest(f"result: {error}") from None
    return end

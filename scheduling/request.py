"""What a person submits, checked in full before anything is created."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from toolcrib.scheduling.constraints import WORK, Constraints, checked_tags
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.names import DEFAULT_POOL, checked_name
from toolcrib.scheduling.quoting import shown
from toolcrib.scheduling.references import is_reference
from toolcrib.scheduling.validation import Reworded, validated

MAX_GOAL_BYTES: Final = 128 * 1024
MAX_INPUTS_BYTES: Final = 256 * 1024
MAX_INPUTS_DEPTH: Final = 64
MAX_RESULT_BYTES: Final = 256 * 1024
MAX_NAME_LENGTH: Final = 200
SHORT_GOAL_LENGTH: Final = 60
MAX_TIMEOUT: Final = 30 * 86_400.0
DEFAULT_TIMEOUT: Final = 86_400.0

Checked = TypeVar("Checked")
Seconds = Annotated[float, Field(gt=0, le=MAX_TIMEOUT, allow_inf_nan=False)]


class TaskRequest(BaseModel):
    """A goal, a workflow reference or a work's name, and what the task needs; durations are seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    goal: str | None = None
    workflow: str | None = None
    """`name` or `name@version`."""
    work: str | None = None
    """The name of a function that an application has registered for its own worker."""
    inputs: dict[str, Any] = Field(default_factory=dict)
    name: str | None = None
    driver_type: str | None = None
    tags: tuple[str, ...] = ()
    device_id: str | None = None
    host_id: str | None = None
    priority: Annotated[int, Field(ge=1, le=5)] = 3
    """1 is served first, by strategies that look at it."""
    pool: str = DEFAULT_POOL
    group_id: str | None = None
    group_name: str | None = None
    timeout: Seconds = DEFAULT_TIMEOUT
    """How long one attempt may run."""
    queue_timeout: Seconds | None = None
    """How long the task may wait in the queue before it fails."""
    max_attempts: Annotated[int, Field(ge=1, le=100)] | None = None
    """None: the pool's."""

    @property
    def constraints(self) -> Constraints:
        """What it asks of a device.

        For a work that includes that it is a slot of an application that has it, for a workflow that its host runs it.
        """
        tags = self.tags if self.work is None else tuple(sorted({*self.tags, WORK + self.work}))
        return Constraints(
            driver_type=self.driver_type,
            tags=tags,
            device_id=self.device_id,
            host_id=self.host_id,
            workflow=self.workflow,
        )

    @property
    def title(self) -> str:
        """The task's name: as given, else its workflow or work, else its goal shortened to one line."""
        if given := self.name or self.workflow or self.work:
            return given
        line = " ".join((self.goal or "").split())
        return line if len(line) <= SHORT_GOAL_LENGTH else line[: SHORT_GOAL_LENGTH - 1] + "…"

    @property
    def digest(self) -> str:
        """A fingerprint of the content: equal for equal requests."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @field_validator("tags", mode="before")
    @classmethod
    def _tags_are_a_list_of_texts(cls, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list | tuple):
            raise ValueError("must be a list of texts")
        for tag in value:
            if not isinstance(tag, str):
                raise ValueError(f"{shown(tag)} is not a text; put it in quotes")
        return reworded(checked_tags, value)

    @field_validator("pool", "driver_type", "device_id", "host_id", "work")
    @classmethod
    def _is_a_name(cls, value: str | None, info: ValidationInfo) -> str | None:
        return None if value is None else reworded(checked_name, value, info.field_name or "")

    @field_validator("goal")
    @classmethod
    def _goal_is_some_text(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if not value.strip():
            raise ValueError("is blank")
        return checked_text(value)

    @field_validator("workflow")
    @classmethod
    def _workflow_is_a_reference(cls, value: str | None) -> str | None:
        if value is not None and not is_reference(value):
            raise ValueError(f"{shown(value)} is not NAME or NAME@VERSION")
        return value

    @field_validator("name", "group_id", "group_name")
    @classmethod
    def _is_a_line(cls, value: str | None) -> str | None:
        return None if value is None else checked_line(value)

    @field_validator("inputs")
    @classmethod
    def _inputs_are_json(cls, value: dict[str, Any]) -> dict[str, Any]:
        checked_json(value, MAX_INPUTS_BYTES)
        return value

    @model_validator(mode="after")
    def _has_one_kind_of_work(self) -> TaskRequest:
        given = sum(kind is not None for kind in (self.goal, self.workflow, self.work))
        if given != 1:
            raise ValueError(f"goal, workflow, work: give exactly one of them; {given or 'none'} were given")
        if self.group_name is not None and self.group_id is None:
            raise ValueError("group_name: needs a group_id")
        return self


def parse_request(data: Any) -> TaskRequest:
    """Return `data`, any JSON value, as a request.

    Raises:
        InvalidRequest: it is not one; the message names the field.
    """
    if not isinstance(data, dict):
        raise InvalidRequest('the task\'s input is not a JSON object such as {"goal": "echo hello"}')
    return validated(TaskRequest, data)


def checked_line(text: str) -> str:
    """Return `text`, without blanks round it, if it is a line that can be shown.

    Raises:
        ValueError: it is empty, too long or not printable.
    """
    clean = text.strip()
    if not 1 <= len(clean) <= MAX_NAME_LENGTH or not clean.isprintable():
        raise ValueError(f"is not 1 to {MAX_NAME_LENGTH} printable characters")
    return clean


def checked_json(value: Any, limit: int) -> None:
    """Check a value that is to be kept as JSON.

    Raises:
        ValueError: it is not JSON, nested too deeply, or longer than `limit` bytes.
    """
    _check_structure(value)
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"is not JSON: {error}") from None
    _within(text, limit)


def reworded(check: Callable[..., Checked], *args: Any) -> Checked:
    """Run a check of ours inside pydantic, which only understands ValueError."""
    try:
        return check(*args)
    except InvalidRequest as error:
        raise Reworded(error) from None


def checked_text(text: str) -> str:
    """Return `text` if it can be sent to a process, and is no longer than a goal may be.

    Raises:
        ValueError: it cannot, or it is.
    """
    if "\0" in text:
        raise ValueError("has a NUL character")
    return _within(text, MAX_GOAL_BYTES)


def _within(text: str, limit: int) -> str:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError("is not valid Unicode") from None
    if size > limit:
        raise ValueError(f"is {size:,} bytes long, the limit is {limit:,}")
    return text


def _check_structure(value: Any) -> None:
    """Check depth and keys level by level, since what is nested deeply cannot be walked by recursion."""
    level: list[Any] = [value]
    for _ in range(MAX_INPUTS_DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return
    raise ValueError(f"is nested deeper than {MAX_INPUTS_DEPTH} levels")


def _children(item: Any) -> Iterable[Any]:
    if not isinstance(item, dict):
        return item if isinstance(item, list | tuple) else ()
    if odd := [key for key in item if not isinstance(key, str)]:
        raise ValueError(f"is not JSON: key {shown(odd[0])} is not a text")
    return item.values()

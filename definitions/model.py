"""WorkflowDefinition: what a person writes to have several steps run under one lease."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from toolcrib.definitions.checks import first_fault
from toolcrib.definitions.fields import (
    MAX_ENTRIES,
    Attempts,
    Command,
    Entries,
    Identifier,
    Name,
    Seconds,
    Text,
    Truth,
    Value,
    Variable,
    Version,
)
from toolcrib.definitions.input_types import InputType, Scalar, as_input
from toolcrib.scheduling.request import checked_json

MAX_STEPS: Final = 500
MAX_WITH_BYTES: Final = 64 * 1024

_CONFIG: Final = ConfigDict(
    frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True, serialize_by_alias=True
)


class Input(BaseModel):
    """A value that whoever submits a task gives to the definition."""

    model_config = _CONFIG

    type: InputType = "string"
    """What values it takes; one that is given as text is converted."""
    default: Scalar | None = None
    """What it is if it is not given; without one it has to be given."""
    description: Text | None = None
    """What it is for."""

    @field_validator("default")
    @classmethod
    def _default_is_of_the_type(cls, value: Scalar | None, info: ValidationInfo) -> Scalar | None:
        return value if value is None or "type" not in info.data else as_input(value, info.data["type"])


class Retry(BaseModel):
    """How often a step is tried."""

    model_config = _CONFIG

    max_attempts: Attempts = 1
    """With the first one. Between them is 1 second, then 2, 4 and so on up to a minute."""


class Step(BaseModel):
    """One command, which runs when the one before it has ended."""

    model_config = _CONFIG

    id: Identifier
    """Unique; others refer to it as `steps.ID`."""
    runner: Literal["shell", "exec", "python"] = "shell"
    """`shell`: `run` is a script for /bin/sh. `exec`: a program. `python`: a function, as `module:function`."""
    run: Command
    """What is run. No reference can stand in it: values come by `env`, `with` and `stdin`."""
    env: Annotated[dict[Variable, Value], Field(max_length=MAX_ENTRIES)] = {}
    """Environment variables."""
    with_: Annotated[dict[Text, Any], Field(alias="with")] = {}
    """With `exec`: `args`, a list of arguments. With `python`: arguments of the function, by name."""
    stdin: Value | None = None
    """Standard input of `shell` and `exec`; without it that is empty."""
    when: Text | None = None
    """A comparison such as `${{ steps.fetch.exit_code == 0 }}`; the step is skipped if it does not hold."""
    timeout: Seconds | None = None
    """How long one attempt may take, such as `30s`; then it is ended, and has failed."""
    retry: Retry = Retry()
    """How often it is tried."""
    continue_on_error: Truth = False
    """Whether the steps after it run although it has failed."""

    @field_validator("with_")
    @classmethod
    def _with_is_json(cls, value: dict[str, Any]) -> dict[str, Any]:
        checked_json(value, MAX_WITH_BYTES)
        return value


class WorkflowDefinition(BaseModel):
    """Steps that run one after another under the lease of one task."""

    model_config = _CONFIG

    name: Name
    """What tasks refer to, alone or as `name@version`."""
    version: Version = "1"
    """Which one of that name; `1.10` is `1.10`, with or without quotes."""
    description: Text | None = None
    """What it does."""
    inputs: Entries[Input] = {}
    """What it takes, by name; referred to as `inputs.NAME`."""
    steps: Annotated[list[Step], Field(min_length=1, max_length=MAX_STEPS)]
    """What it does, in this order."""
    outputs: Entries[Value] = {}
    """The result of the task, by name: texts, or a reference alone, which keeps its type."""

    @property
    def reference(self) -> str:
        """What pins this very definition: `name@version`."""
        return f"{self.name}@{self.version}"

    @model_validator(mode="after")
    def _refers_to_what_there_is(self) -> WorkflowDefinition:
        if (fault := first_fault(self)) is not None:
            raise PydanticCustomError("definition", "{problem}", {"problem": fault.problem, "path": fault.path})
        return self

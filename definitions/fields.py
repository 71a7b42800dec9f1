"""What the fields of a definition may hold."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from toolcrib.definitions.references import IDENTIFIER
from toolcrib.scheduling.durations import parse_duration
from toolcrib.scheduling.names import checked_name, checked_version
from toolcrib.scheduling.quoting import shown
from toolcrib.scheduling.request import MAX_TIMEOUT, checked_text, reworded

MAX_ENTRIES: Final = 200
"""Of inputs, outputs, and of one step's environment."""
MAX_ATTEMPTS: Final = 100

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_OURS: Final = "TOOLCRIB_"
_WHOLE: Final = re.compile(r"[0-9]{1,9}")
_SCALAR: Final[dict[str, Any]] = {"type": ["string", "number", "boolean"]}
"""For editors: what a YAML reader takes for a number is taken as it is written."""

Entry = TypeVar("Entry")


def _identifier(text: str) -> str:
    if not re.fullmatch(IDENTIFIER, text):
        raise ValueError(f"{shown(text)} is not 1 to 64 of A-Z a-z 0-9 _ - beginning with a letter or _")
    return text


def _variable(text: str) -> str:
    if not _VARIABLE.fullmatch(text):
        raise ValueError(f"{shown(text)} cannot name a variable: A-Z a-z 0-9 and _, not beginning with a digit")
    if text.startswith(_OURS):
        raise ValueError(f"{shown(text)} is toolcrib's own; names with {_OURS} tell the step of its lease")
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank")
    return text


def _seconds(value: Any) -> Any:
    seconds = reworded(parse_duration, value, "timeout") if isinstance(value, str) else value
    if isinstance(seconds, float | int) and not 0 < seconds <= MAX_TIMEOUT:
        raise ValueError(f"{shown(value)} is not more than 0 and at most {MAX_TIMEOUT / 86_400:g} days")
    return seconds


def _truth(value: Any) -> Any:
    if isinstance(value, str):
        if value not in {"true", "false"}:
            raise ValueError(f"{shown(value)} is neither true nor false")
        return value == "true"
    return value


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        if not _WHOLE.fullmatch(value):
            raise ValueError(f"{shown(value)} is no whole number")
        return int(value)
    return value


def _matching(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^{pattern}$"}


Identifier = Annotated[str, AfterValidator(_identifier), WithJsonSchema(_matching(IDENTIFIER))]
Variable = Annotated[str, AfterValidator(_variable), WithJsonSchema(_matching(_VARIABLE.pattern))]
Text = Annotated[str, AfterValidator(checked_text)]
Value = Annotated[Text, WithJsonSchema(_SCALAR)]
Command = Annotated[Text, AfterValidator(_not_blank)]
Seconds = Annotated[
    float,
    BeforeValidator(_seconds),
    WithJsonSchema({"type": ["string", "number"], "examples": ["30s", "5m", "1h30m", "PT5M", 90]}),
]
Entries = Annotated[dict[Identifier, Entry], Field(max_length=MAX_ENTRIES)]
Name = Annotated[str, AfterValidator(lambda text: reworded(checked_name, text, "name"))]
Version = Annotated[
    str, AfterValidator(lambda text: reworded(checked_version, text, "version")), WithJsonSchema(_SCALAR)
]
Attempts = Annotated[int, Field(ge=1, le=MAX_ATTEMPTS), BeforeValidator(_whole)]
Truth = Annotated[bool, BeforeValidator(_truth)]

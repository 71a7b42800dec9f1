"""The types of a definition's inputs."""

from __future__ import annotations

import re
from math import isfinite
from typing import Any, Final, Literal

from toolcrib.scheduling.quoting import shown

InputType = Literal["string", "integer", "number", "boolean"]
Scalar = str | bool | int | float

_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,300}")
_NUMBER: Final = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_TRUTH: Final = {"true": True, "false": False}


def as_input(value: Any, kind: InputType) -> Scalar:
    """Return `value` as a value of an input: itself, or what a text says.

    Raises:
        ValueError: it is no value of that type.
    """
    found = _from_text(value, kind) if isinstance(value, str) else _from_json(value, kind)
    if found is None:
        raise ValueError(f"{shown(value)} is no {kind}")
    return found


def _from_text(text: str, kind: InputType) -> Scalar | None:
    match kind:
        case "string":
            return text
        case "boolean":
            return _TRUTH.get(text)
        case "integer":
            return int(text) if _INTEGER.fullmatch(text) else None
        case "number":
            value = float(text) if len(text) <= 300 and _NUMBER.fullmatch(text) else None
            return value if value is None or isfinite(value) else None


def _from_json(value: Any, kind: InputType) -> Scalar | None:
    if isinstance(value, bool):
        return value if kind == "boolean" else None
    if isinstance(value, int):
        return value if kind in {"integer", "number"} else None
    return value if isinstance(value, float) and isfinite(value) and kind == "number" else None

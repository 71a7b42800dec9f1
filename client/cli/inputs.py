"""Reads a task's goal and inputs from the command line, files and standard input."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import typer

from toolcrib.scheduling.errors import InvalidRequest

MAX_READ: Final = 1024 * 1024
"""Bytes of JSON or of a goal that are read at most; the limits of a task are far below."""


def read_goal(goal: str | None) -> str | None:
    """Return the goal, which `-` says is on standard input.

    Raises:
        InvalidRequest: standard input is too long or not UTF-8.
    """
    if goal != "-":
        return goal
    return _decoded(sys.stdin.buffer.read(MAX_READ + 1), "goal").removesuffix("\n")


def read_inputs(text: str | None, pairs: Sequence[str]) -> dict[str, Any]:
    """Return the JSON object in `text`, or in the file that `@FILE` names, with the `K=V` texts of `pairs` over it.

    Raises:
        InvalidRequest: it is no JSON object, or the file cannot be read.
        typer.BadParameter: a pair has no `=` or repeats a key.
    """
    inputs = {} if text is None else _parsed(_read_file(text[1:]) if text.startswith("@") else text)
    return inputs | _pairs(pairs)


def _pairs(pairs: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{pair!r} is not K=V", param_hint="--input")
        if key in found:
            raise typer.BadParameter(f"{key!r} is given twice", param_hint="--input")
        found[key] = value
    return found


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_without_repeats)
    except RecursionError:
        raise InvalidRequest("inputs: is nested too deep") from None
    except ValueError as error:
        raise InvalidRequest(f"inputs: is not JSON: {error}", hint='Give JSON such as \'{"url": "x"}\'') from None
    if not isinstance(value, dict):
        raise InvalidRequest("inputs: is not a JSON object", hint='Give names and values: \'{"url": "x"}\'')
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise InvalidRequest(f"inputs: {repeated!r} stands twice in one object")
    return found


def _read_file(name: str) -> str:
    try:
        with Path(name).open("rb") as file:
            return _decoded(file.read(MAX_READ + 1), "inputs")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidRequest(f"inputs: cannot read {name!r}: {reason}", hint="Correct the name after @") from None


def _decoded(data: bytes, field: str) -> str:
    if len(data) > MAX_READ:
        raise InvalidRequest(f"{field}: is longer than {MAX_READ:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{field}: is not UTF-8 at byte {error.start}") from None

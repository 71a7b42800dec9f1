"""Reads a WorkflowDefinition from YAML. Whatever is wrong with it is said with line and column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from toolcrib.definitions.model import Input, Retry, Step, WorkflowDefinition
from toolcrib.definitions.yaml_text import parse_yaml
from toolcrib.definitions.yaml_value import YamlValue
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.quoting import shown

EXTENSION: Final = "x-"
"""Keys at the top that begin so are the writer's own: a place for anchors."""
MAX_UNFOLDED: Final = 768 * 1024
"""Characters, with 10 for each value, when every alias is replaced by what it stands for; and bytes of it as JSON."""
_PER_VALUE: Final = 10
_TOO_LARGE: Final = "with all aliases replaced, the definition is too large"
_NOTHING: Final = ("null", "Null", "NULL", "~")
_KEY: Final = "[key]"

_KINDS: Final = {
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "list_type": "must be a list",
    "string_type": "must be a text",
    "too_short": "has no entries",
}


def parse_definition(content: bytes, file: Path) -> WorkflowDefinition:
    """Return the definition that `content` holds; `file` is where it is from, for messages.

    Raises:
        InvalidRequest: it is none; the message says in which line, column and key, and why.
    """
    document = parse_yaml(content, file)
    entries = {key: value for key, value in document.mapping(known=None).items() if not key.startswith(EXTENSION)}
    unfolding = _Unfolding()
    data = {key: unfolding.of(value) for key, value in entries.items()}
    try:
        definition = WorkflowDefinition.model_validate(data)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        unknown = [fault for fault in faults if fault["type"] == "extra_forbidden"]
        raise _located(document, (unknown or faults)[0]) from None
    if len(definition.model_dump_json()) > MAX_UNFOLDED:
        raise document.fault(_TOO_LARGE)
    return definition


class _Unfolding:
    """Turns values of a file into data in which all scalars are texts, and aliases are what they stand for."""

    def __init__(self) -> None:
        self._size = 0

    def of(self, value: YamlValue) -> Any:
        """Return a value as data."""
        node = value.node
        self._size += _PER_VALUE + (len(node.value) if isinstance(node, ScalarNode) else 0)
        if self._size > MAX_UNFOLDED:
            raise value.fault(_TOO_LARGE)
        if isinstance(node, MappingNode):
            return {key: self.of(child) for key, child in value.mapping(known=None).items()}
        if isinstance(node, SequenceNode):
            return [self.of(entry) for entry in value.entries()]
        written = value.written()
        if value.is_plain and written in _NOTHING:
            raise value.fault(f"{written} means nothing; put it in quotes if it is a text")
        return written


def _located(document: YamlValue, fault: ErrorDetails) -> InvalidRequest:
    path = (*fault["loc"], *fault.get("ctx", {}).get("path", ()))
    if fault["type"] == "missing":
        return _at(document, path[:-1]).fault(f"has no {path[-1]}")
    value = _at(document, path)
    if fault["type"] == "extra_forbidden":
        return value.at(value.key or value.node, value.path).fault(_unknown(path))
    return value.fault(_problem(fault))


def _at(document: YamlValue, path: Sequence[int | str]) -> YamlValue:
    """Return the value that a path leads to, or the last one on it: pydantic adds what it tried of a union."""
    value = document
    for part in path:
        if part == _KEY:
            return value.at(value.key or value.node, value.path)
        if isinstance(value.node, SequenceNode) and isinstance(part, int):
            value = value.entries()[part]
        elif isinstance(value.node, MappingNode) and part in (found := value.mapping(known=None)):
            value = found[str(part)]
        else:
            break
    return value


def _problem(fault: ErrorDetails) -> str:
    kind, context = fault["type"], fault.get("ctx", {})
    if kind in _KINDS:
        return _KINDS[kind]
    if kind == "literal_error":
        return f"{shown(fault['input'])} is not one of {context['expected']}"
    if kind == "too_long":
        return f"has more than {context['max_length']} entries"
    message = fault["msg"].removeprefix("Value error, ")
    return message if kind in {"value_error", "definition"} else f"{message[:1].lower()}{message[1:]}"


def _unknown(path: Sequence[int | str]) -> str:
    known = _keys(_MODELS_BY_PATH.get(_shape(path[:-1]), WorkflowDefinition))
    close = get_close_matches(str(path[-1]), known, n=1)
    return "unknown key; " + (f"did you mean {close[0]}?" if close else "known: " + ", ".join(known))


_MODELS_BY_PATH: Final[Mapping[tuple[str, ...], type[BaseModel]]] = {
    ("inputs", "*"): Input,
    ("steps", "*"): Step,
    ("steps", "*", "retry"): Retry,
}


def _shape(path: Sequence[int | str]) -> tuple[str, ...]:
    return tuple("*" if place == 1 else str(part) for place, part in enumerate(path))


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]

"""Reads the YAML that people write, and refuses what different readers would understand differently.

The parser is libyaml, which is fast and leaves scalars as they are written. It puts nodes together by recursion
in C, so that depth and number of the values are looked at first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yaml import CBaseLoader
from yaml.error import MarkedYAMLError
from yaml.events import CollectionEndEvent, CollectionStartEvent, NodeEvent
from yaml.nodes import Node
from yaml.scanner import ScannerError

from toolcrib.definitions.yaml_nodes import MAX_VALUES, NodeChecker
from toolcrib.definitions.yaml_value import YamlValue, fault_at
from toolcrib.scheduling.errors import InvalidRequest

MAX_BYTES: Final = 256 * 1024
MAX_DEPTH: Final = 32

_UNREADABLE: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OPEN: Final = "Close the quote."
_ESCAPE: Final = "Use single quotes, or write the backslash twice."
_QUOTES: Final = "Put a value that begins with, or has, special characters in quotes."
_TOO_DEEP: Final = f"nested deeper than {MAX_DEPTH} levels"
_DEPTH_OF_PARSER: Final = "exceeded maximum nesting depth"
_NO_TOKEN: Final = "found character that cannot start any token"  # noqa: S105 - of YAML


@dataclass
class _Place:
    line: int
    column: int


def parse_yaml(content: bytes, file: Path) -> YamlValue:
    """Return what `content` holds: one document of plain YAML, without tags of its own and without repeated keys.

    `file` is where it is from, for messages. More than `MAX_BYTES` need not be given to have them refused.

    Raises:
        InvalidRequest: it is not that; the message says where and why.
    """
    text = _text(content, file)
    try:
        _check_size(text, file)
        root = _composed(text)
    except MarkedYAMLError as error:
        raise _no_yaml(error, text, file) from None
    document = YamlValue(node=root, file=file) if root else None
    if document is None or document.empty:
        raise fault_at(file, _Place(0, 0), "the file is empty")
    NodeChecker().check(document)
    return document


def _text(content: bytes, file: Path) -> str:
    if len(content) > MAX_BYTES:
        limit = f"the file is larger than {MAX_BYTES // 1024} KiB, which is the limit"
        raise fault_at(file, _place(content[:MAX_BYTES].decode(errors="replace")), limit)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"the file is not text in UTF-8: byte {error.start} is no part of any"
        raise fault_at(file, _place(content[: error.start].decode(errors="replace")), problem) from None
    if unreadable := _UNREADABLE.search(text):
        problem = f"the character #x{ord(unreadable[0]):04x} cannot stand in YAML"
        raise fault_at(file, _place(text[: unreadable.start()]), problem)
    return text


def _place(before: str) -> _Place:
    """Return the place that comes after the text `before`."""
    lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", before.removeprefix("\ufeff"))
    return _Place(len(lines) - 1, len(lines[-1]))


def _check_size(text: str, file: Path) -> None:
    loader = CBaseLoader(text)
    depth = values = 0
    try:
        while (event := loader.get_event()) is not None:
            if isinstance(event, CollectionStartEvent):
                depth += 1
            elif isinstance(event, CollectionEndEvent):
                depth -= 1
            values += isinstance(event, NodeEvent)
            if depth > MAX_DEPTH:
                raise fault_at(file, event.start_mark, _TOO_DEEP)
            if values > MAX_VALUES:
                raise fault_at(file, event.start_mark, f"more than {MAX_VALUES:,} values, which is the limit")
    finally:
        loader.dispose()


def _composed(text: str) -> Node | None:
    loader = CBaseLoader(text)
    try:
        root: Node | None = loader.get_single_node()
    finally:
        loader.dispose()
    return root


def _no_yaml(error: MarkedYAMLError, text: str, file: Path) -> InvalidRequest:
    mark = error.problem_mark or error.context_mark
    problem = str(error.problem)
    if problem == _DEPTH_OF_PARSER:
        return fault_at(file, mark, _TOO_DEEP)
    if problem == _NO_TOKEN and mark and mark.index < len(text):
        if text[mark.index] == "\t":
            return fault_at(file, mark, "a tab stands where spaces have to", hint="Indent with spaces.")
        problem = f"found character {text[mark.index]!r} that cannot start any token"
    elif error.context:
        problem = f"{error.context}, {problem}"
    if error.context is not None and error.context.endswith("a quoted scalar"):
        if "end of stream" in problem:
            return fault_at(file, error.context_mark, problem, hint=_OPEN)
        return fault_at(file, mark, problem, hint=_ESCAPE)
    if isinstance(error, ScannerError) or "did not find" in problem:
        return fault_at(file, mark, problem, hint=_QUOTES)
    return fault_at(file, mark, problem)

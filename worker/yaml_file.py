"""Opens YAML files that people write, and refuses what different readers would understand differently."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Final

from ruamel.yaml import YAML
from ruamel.yaml.composer import MaxDepthExceededError
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.worker.yaml_value import YamlValue, fault_at

MAX_BYTES: Final = 256 * 1024
"""The parser takes about 7 s a megabyte."""
MAX_DEPTH: Final = 32
MERGE_KEY: Final = "<<"

_PLAIN_TAGS: Final = ("map", "seq", "str", "int", "float", "bool", "null", "timestamp", "merge")
_TAGS: Final = frozenset(f"tag:yaml.org,2002:{name}" for name in _PLAIN_TAGS)
_QUOTES: Final = "Put a value that begins with, or has, special characters in quotes."


def read_yaml(file: Path) -> YamlValue:
    """Return what `file` holds: one document of plain YAML, without tags of its own and without repeated keys.

    Raises:
        InvalidRequest: it cannot be read, or is not that; the message says where and why.
    """
    root = _composed(file, _read(file))
    document = YamlValue(node=root, file=file) if root else None
    if document is None or document.empty:
        raise fault_at(file, None, "the file is empty")
    _Checker().check(document)
    return document


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidRequest(f"{file}: cannot be read: {error.strerror}", hint="Check the path.") from None
    if len(content) > MAX_BYTES:
        raise fault_at(file, None, f"the file is larger than {MAX_BYTES // 1024} KiB, which is the limit")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fault_at(file, None, f"the file is not text in UTF-8: byte {error.start} is no part of any") from None


def _composed(file: Path, text: str) -> Node | None:
    parser = YAML(pure=True)
    parser.max_depth = MAX_DEPTH
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReusedAnchorWarning)
            root: Node | None = parser.compose(text)
    except MaxDepthExceededError as error:
        raise fault_at(file, error.problem_mark, f"nested deeper than {MAX_DEPTH} levels") from None
    except MarkedYAMLError as error:
        raise fault_at(file, error.problem_mark, str(error.problem), hint=_QUOTES) from None
    except YAMLError as error:
        raise fault_at(file, None, str(error).partition("\n")[0]) from None
    return root


class _Checker:
    """Checks every node once, however many aliases lead to it, and puts keys brought in by `<<` among the others."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._done: set[int] = set()

    def check(self, value: YamlValue) -> None:
        """Check `value` and all that is in it."""
        node = value.node
        if id(node) in self._open:
            raise value.fault("contains itself")
        if id(node) in self._done:
            return
        if str(node.tag) not in _TAGS:
            raise value.fault(f"the tag {node.tag} is not known")
        self._open.add(id(node))
        if isinstance(node, MappingNode):
            self._check_keys(value, node)
        elif isinstance(node, SequenceNode):
            for entry in value.entries():
                self.check(entry)
        self._open.remove(id(node))
        self._done.add(id(node))

    def _check_keys(self, value: YamlValue, mapping: MappingNode) -> None:
        own: dict[str, tuple[Node, Node]] = {}
        for key, child in mapping.value:
            if not isinstance(key, ScalarNode):
                raise value.at(key, value.path).fault("a key must be a text; put braces and brackets in quotes")
            path = value.child_path(key.value)
            if key.value in own:
                first = own[key.value][0].start_mark.line + 1
                raise value.at(key, path).fault(f"given twice; the first one is on line {first}")
            own[key.value] = key, child
            self.check(value.at(child, path, key))
        if MERGE_KEY in own:
            key, child = own.pop(MERGE_KEY)
            brought = _brought_in(value.at(child, value.child_path(MERGE_KEY), key))
            mapping.value = list((brought | own).values())


def _brought_in(value: YamlValue) -> dict[str, tuple[Node, Node]]:
    """Return keys and values that a checked value of `<<` brings in; of several mappings the first one wins."""
    brought: dict[str, tuple[Node, Node]] = {}
    for source in value.entries() if isinstance(value.node, SequenceNode) else [value]:
        if not isinstance(source.node, MappingNode):
            raise value.fault("must be a mapping, or a list of mappings")
        brought = {key.value: (key, child) for key, child in source.node.value} | brought
    return brought

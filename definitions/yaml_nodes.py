"""Checks nodes of YAML, each once, however many aliases lead to it; what `<<` brings in is put among the other keys."""

from __future__ import annotations

from typing import Final

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from toolcrib.definitions.yaml_value import YamlValue
from toolcrib.scheduling.quoting import plain

MAX_VALUES: Final = 20_000
"""In a file, and brought in by `<<`."""
MERGE_KEY: Final = "<<"

_PLAIN_TAGS: Final = ("map", "seq", "str", "int", "float", "bool", "null", "timestamp", "merge")
_TAGS: Final = frozenset(f"tag:yaml.org,2002:{name}" for name in _PLAIN_TAGS)


class NodeChecker:
    """Checks the nodes of one file, each once."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._done: set[int] = set()
        self._brought = 0

    def check(self, value: YamlValue) -> None:
        """Check `value` and all that is in it.

        Raises:
            InvalidRequest: it contains itself, has a tag of its own, a key twice, or one that is no text.
        """
        node = value.node
        if id(node) in self._open:
            raise value.fault("contains itself")
        if id(node) in self._done:
            return
        if str(node.tag) not in _TAGS:
            raise value.fault(f"the tag {plain(str(node.tag))} is not known")
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
            brought = self._brought_in(value.at(child, value.child_path(MERGE_KEY), key))
            mapping.value = list((brought | own).values())

    def _brought_in(self, value: YamlValue) -> dict[str, tuple[Node, Node]]:
        """Return keys and values that a checked value of `<<` brings in; of several mappings the first one wins."""
        brought: dict[str, tuple[Node, Node]] = {}
        for source in value.entries() if isinstance(value.node, SequenceNode) else [value]:
            if not isinstance(source.node, MappingNode):
                raise value.fault("must be a mapping, or a list of mappings")
            self._brought += len(source.node.value)
            if self._brought > MAX_VALUES:
                raise value.fault(f"with all {MERGE_KEY} followed there are more than {MAX_VALUES:,} values")
            brought = {key.value: (key, child) for key, child in source.node.value} | brought
        return brought

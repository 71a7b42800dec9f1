"""Values in a YAML file that a person wrote, each of which knows where it stands.

Texts stay as they are written. What YAML takes for a number, a date or a truth value is never turned into a text behind
its writer's back (`3.10` would become `3.1`, and `no` would become `False`): it has to be put in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final, Protocol, TypeVar

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.quoting import plain

Given = TypeVar("Given")
Checked = TypeVar("Checked")

_OTHER_MEANINGS: Final = (
    (re.compile(r"~|null", re.IGNORECASE), "means nothing"),
    (re.compile(r"true|false|yes|no|on|off", re.IGNORECASE), "means true or false"),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)(e[-+]?[0-9]+)?", re.IGNORECASE), "is a number"),
    (re.compile(r"[-+]?0[xob][0-9a-f_]+|[-+]?\.inf|\.nan", re.IGNORECASE), "is a number"),
    (re.compile(r"[-+]?[0-9][0-9_]*(:[0-9]{1,2})+(\.[0-9_]*)?"), "is a number to base 60"),
    (re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt\s].*)?"), "is a date"),
)
"""What plain scalars mean to readers of YAML 1.1 or 1.2; a file should mean the same to all of them."""


class Mark(Protocol):
    """A place in a file, counted from 0."""

    line: int
    column: int


@dataclass(frozen=True, kw_only=True)
class YamlValue:
    """A value of a file, and the path of its key. What is wrong with it is raised as `InvalidRequest`."""

    node: Node
    file: Path
    path: str = ""
    key: Node | None = None
    """The node of its key, if it has one."""

    @property
    def empty(self) -> bool:
        """Whether nothing is written where the value should be."""
        return self.is_plain and not self.node.value

    @property
    def is_plain(self) -> bool:
        """Whether it is a scalar without quotes."""
        return isinstance(self.node, ScalarNode) and not self.node.style

    def fault(self, problem: str) -> InvalidRequest:
        """Return the error that says what is wrong here."""
        return self._located(f"{self.path}: {problem}" if self.path else problem)

    def mapping(self, known: Collection[str] | None, required: Collection[str] = ()) -> dict[str, YamlValue]:
        """Return the values by key. All keys must be `known`, unless that is None; `required` ones must be there."""
        if not isinstance(self.node, MappingNode):
            raise self._is_no("mapping")
        found: dict[str, YamlValue] = {}
        for key_node, node in self.node.value:
            key = key_node.value
            if known is not None and key not in known:
                close = get_close_matches(key, known, n=1)
                advice = f"did you mean {close[0]}?" if close else "known: " + ", ".join(known)
                raise self.at(key_node, self.child_path(key)).fault(f"unknown key; {advice}")
            found[key] = self.at(node, self.child_path(key), key_node)
        for key in required:
            if key not in found:
                raise self.fault(f"has no {key}")
        return found

    def entries(self) -> list[YamlValue]:
        """Return the entries of a list."""
        if not isinstance(self.node, SequenceNode):
            raise self._is_no("list")
        return [self.at(node, f"{self.path}[{index}]") for index, node in enumerate(self.node.value)]

    def written(self) -> str:
        """Return a scalar as it is written, whatever it means to YAML."""
        if self.empty or not isinstance(self.node, ScalarNode):
            raise self._is_no("text")
        return str(self.node.value)

    def text(self) -> str:
        """Return a text. If it would mean something else to a reader of YAML, it must be in quotes."""
        written = self.written()
        if self.is_plain:
            for pattern, meaning in _OTHER_MEANINGS:
                if pattern.fullmatch(written):
                    raise self.fault(f"{plain(written)} {meaning}, put it in quotes")
        return written

    def checked(self, check: Callable[[Given, str], Checked], value: Given) -> Checked:
        """Return what `check` makes of `value`; an `InvalidRequest` of its gets to say where this stands."""
        try:
            return check(value, self.path)
        except InvalidRequest as error:
            raise self._located(error.message) from None

    def child_path(self, key: str) -> str:
        """Return the path of `key` in this mapping."""
        return f"{self.path}.{plain(key)}" if self.path else plain(key)

    def at(self, node: Node, path: str, key: Node | None = None) -> YamlValue:
        """Return another value of the same file."""
        return YamlValue(node=node, file=self.file, path=path, key=key)

    def _is_no(self, kind: str) -> InvalidRequest:
        return self.fault("is empty" if self.empty else f"must be a {kind}")

    def _located(self, message: str) -> InvalidRequest:
        # The parser places an empty value at whatever comes next, which may be many lines below.
        node = self.key if self.key and self.empty else self.node
        return fault_at(self.file, node.start_mark, message)


def fault_at(
    file: Path, mark: Mark | None, problem: str, hint: str = "Correct the file and try again."
) -> InvalidRequest:
    """Return the error for a problem in `file`, at `mark` if that is known."""
    place = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else str(file)
    return InvalidRequest(f"{place}: {problem}", hint=hint)

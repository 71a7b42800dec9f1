"""References such as `${{ inputs.url }}`, and the comparisons in which a condition may use them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, cast

from toolcrib.scheduling.quoting import shown

OPEN: Final = "${{"
CLOSE: Final = "}}"
MAX_EXPRESSION: Final = 500
"""Characters of one expression."""
_EXAMPLE: Final = f"{OPEN} steps.fetch.exit_code == 0 {CLOSE}"

IDENTIFIER: Final = r"[A-Za-z_][A-Za-z0-9_-]{0,63}"
_REFERENCE: Final = re.compile(rf"inputs\.({IDENTIFIER})|steps\.({IDENTIFIER})\.({IDENTIFIER})")
_NUMBER: Final = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")
_TEXT: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_OPERAND: Final = r"('[^']*'|\"[^\"]*\"|[^\s'\"=!<>&|()+*/]+)"
_COMPARISON: Final = re.compile(rf"{_OPERAND}\s*(==|!=|<=|>=|<|>)\s*{_OPERAND}")

Operator = Literal["==", "!=", "<=", ">=", "<", ">"]


class Reference(NamedTuple):
    """`inputs.NAME`, or `steps.ID.FIELD`."""

    name: str
    """Of an input, or the id of a step."""
    field: str | None = None
    """None: it is an input."""

    def __str__(self) -> str:
        return f"inputs.{self.name}" if self.field is None else f"steps.{self.name}.{self.field}"


class Literally(NamedTuple):
    """A value in a comparison that is written out."""

    value: str | int | float | bool


Part = str | Reference
Operand = Reference | Literally


@dataclass(frozen=True)
class Comparison:
    """What a step's condition compares."""

    left: Operand
    operator: Operator
    right: Operand

    @property
    def operands(self) -> tuple[Operand, Operand]:
        """Both sides."""
        return self.left, self.right


def parts_of(text: str) -> tuple[Part, ...]:
    """Return a text as what it consists of: plain text, and references.

    Raises:
        ValueError: something between `${{` and `}}` is no reference.
    """
    parts: list[Part] = []
    end = 0
    while (begin := text.find(OPEN, end)) >= 0:
        parts.append(text[end:begin])
        expression, end = _expression(text, begin)
        parts.append(_reference(expression))
    parts.append(text[end:])
    return tuple(part for part in parts if part)


def comparison_of(text: str) -> Comparison:
    """Return the one comparison that a condition is.

    Raises:
        ValueError: it is something else.
    """
    stripped = text.strip()
    if not stripped.startswith(OPEN):
        raise ValueError(f"must be a comparison in {OPEN} {CLOSE}, such as {_EXAMPLE}")
    expression, end = _expression(stripped, 0)
    found = _COMPARISON.fullmatch(expression)
    if end < len(stripped) or found is None:
        raise ValueError(f"must be one comparison, such as {_EXAMPLE}")
    left, operator, right = found.groups()
    return Comparison(_operand(left), cast("Operator", operator), _operand(right))


def references_in(value: Any) -> list[Reference]:
    """Return the references in a text, and in all texts of a list or mapping.

    Raises:
        ValueError: something between `${{` and `}}` is no reference.
    """
    if isinstance(value, str):
        return [part for part in parts_of(value) if isinstance(part, Reference)]
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [reference for child in children for reference in references_in(child)]


def _expression(text: str, begin: int) -> tuple[str, int]:
    """Return what stands between the braces that open at `begin`, and where they are closed."""
    end = text.find(CLOSE, begin)
    if end < 0:
        raise ValueError(f"{OPEN} is not closed by {CLOSE}")
    expression = text[begin + len(OPEN) : end].strip()
    if len(expression) > MAX_EXPRESSION:
        raise ValueError(f"an expression has {len(expression):,} characters, the limit is {MAX_EXPRESSION}")
    return expression, end + len(CLOSE)


def _reference(expression: str) -> Reference:
    found = _REFERENCE.fullmatch(expression)
    if found is None:
        raise ValueError(f"{shown(expression)} is no reference; there are inputs.NAME and steps.ID.FIELD")
    name, step, field = found.groups()
    return Reference(name) if name else Reference(step, field)


def _operand(text: str) -> Operand:
    if _TEXT.fullmatch(text):
        return Literally(text[1:-1])
    if text in {"true", "false"}:
        return Literally(text == "true")
    if _NUMBER.fullmatch(text):
        return Literally(float(text) if "." in text else int(text))
    return _reference(text)

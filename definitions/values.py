"""What references stand for while a definition runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from toolcrib.definitions.references import Comparison, Literally, Operand, Reference, parts_of
from toolcrib.definitions.steps import Printed, StepEnd

MAX_VALUE_BYTES: Final = 128 * 1024 - 1
"""Of one text whose references were replaced: no process takes a longer variable or argument."""
_PRINTED: Final = ("stdout", "stderr")


class ValueFault(Exception):
    """A reference cannot be replaced; the message says why."""


class Values:
    """The inputs, and what came of the steps up to now."""

    def __init__(self, inputs: Mapping[str, Any], ends: Mapping[str, StepEnd]) -> None:
        """`ends` may grow meanwhile."""
        self._inputs = inputs
        self._ends = ends

    def filled(self, value: Any) -> Any:
        """Return a value with its references replaced: a text that is nothing but one becomes what that stands for.

        Raises:
            ValueFault: what was printed is not there as a whole, or the text becomes too long.
        """
        if isinstance(value, str):
            alone = _alone(value)
            return self.text(value) if alone is None else self._whole(alone)
        if isinstance(value, dict):
            return {key: self.filled(child) for key, child in value.items()}
        return [self.filled(child) for child in value] if isinstance(value, list) else value

    def text(self, template: str, *, trimmed: bool = True) -> str:
        """Return a text with its references replaced; `trimmed`: without the line breaks that outputs end with.

        Raises:
            ValueFault: what was printed is not there as a whole, or the text becomes too long.
        """
        written, size = [], 0
        for part in parts_of(template):
            text = part if isinstance(part, str) else as_text(self._whole(part, trimmed=trimmed))
            written.append(text)
            size += len(text.encode(errors="replace"))
            if size > MAX_VALUE_BYTES:
                raise ValueFault(f"is longer than {MAX_VALUE_BYTES:,} bytes with what it refers to")
        return "".join(written)

    def stdin(self, template: str) -> tuple[str | None, str | None]:
        """Return what a step gets as input: a text; or the log of what it is, if that is all that another step printed.

        Raises:
            ValueFault: what was printed is not there as a whole, or the text becomes too long.
        """
        alone = _alone(template)
        if alone is not None and alone.field in _PRINTED:
            printed = self._ends[alone.name].printed(alone.field)
            if printed.log is None and (printed.end or printed.omitted_bytes):
                raise ValueFault(f"{alone} is not there as a whole: there was no room for all of it")
            return None, printed.log
        return self.text(template, trimmed=False), None

    def holds(self, comparison: Comparison) -> bool:
        """Return whether a comparison holds. What is not there, or of another kind, is equal to nothing.

        Raises:
            ValueFault: what was printed is not there as a whole.
        """
        left, right = map(self._operand, comparison.operands)
        if comparison.operator in ("==", "!="):
            equal = _kind(left) == _kind(right) and left == right and left is not None
            return equal is (comparison.operator == "==")
        if not _kind(left) == _kind(right) == "number":
            return False
        match comparison.operator:
            case "<":
                return bool(left < right)
            case "<=":
                return bool(left <= right)
            case ">":
                return bool(left > right)
            case _:
                return bool(left >= right)

    def outputs(self, templates: Mapping[str, str]) -> dict[str, Any]:
        """Return the outputs; what was printed is there as far as it is kept.

        Raises:
            ValueFault: one becomes too long; the message names it.
        """
        lenient = _Lenient(self._inputs, self._ends)
        filled = {}
        for name, template in templates.items():
            try:
                filled[name] = lenient.filled(template)
            except ValueFault as fault:
                raise ValueFault(f"outputs.{name}: {fault}") from None
        return filled

    def _operand(self, operand: Operand) -> Any:
        return operand.value if isinstance(operand, Literally) else self._whole(operand)

    def _whole(self, reference: Reference, *, trimmed: bool = True) -> Any:
        if reference.field is None:
            return self._inputs[reference.name]
        end = self._ends[reference.name]
        if reference.field not in _PRINTED:
            return getattr(end, reference.field)
        printed = end.printed(reference.field)
        if printed.omitted_bytes:
            self._cut(reference, printed)
        return printed.end.rstrip("\n") if trimmed else printed.end

    def _cut(self, reference: Reference, printed: Printed) -> None:
        more = f"; give it to a step as the whole of its stdin, or read it from $TOOLCRIB_ARTIFACTS/{printed.log}"
        raise ValueFault(
            f"{reference} is too long for here, only the end of it is kept{more if printed.log is not None else ''}"
        )


class _Lenient(Values):
    def _cut(self, reference: Reference, printed: Printed) -> None:
        """Take what is kept: the result says of every step how much was omitted."""


def _alone(template: str) -> Reference | None:
    """Return the reference that a text is nothing but; None if it is more."""
    parts = parts_of(template)
    return parts[0] if len(parts) == 1 and isinstance(parts[0], Reference) else None


def as_text(value: Any) -> str:
    """Return a value as it stands within a text: nothing for what is not there, else as JSON has it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__

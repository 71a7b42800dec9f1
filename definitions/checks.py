"""What can be known of a definition before it runs: whether what it refers to will be there, and is of a kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from toolcrib.definitions.references import OPEN, Comparison, Operand, Reference, comparison_of, references_in

if TYPE_CHECKING:
    from toolcrib.definitions.model import Step, WorkflowDefinition

FIELDS: Final = {"stdout": "text", "stderr": "text", "exit_code": "number", "outcome": "text"}
"""What can be referred to of a step, and of what kind it is."""
RESULT: Final = "result"
"""Of a step with runner `python`: what its function returned, any JSON."""
_KINDS: Final = {"string": "text", "integer": "number", "number": "number", "boolean": "true or false"}
_ANY: Final = "any"
_IN_RUN: Final = {
    "shell": "no reference can stand in a command line: what it brings would be run; use env, and $VARIABLE here",
    "exec": "no reference can stand here; use with: {args: [...]}, env or stdin",
    "python": "no reference can stand here; use with or env",
}

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Fault:
    """Something wrong in a definition, and the path to it."""

    path: Path
    problem: str


def first_fault(definition: WorkflowDefinition) -> Fault | None:
    """Return the first thing that is wrong, or None."""
    return next(_faults(definition), None)


def _faults(definition: WorkflowDefinition) -> Iterator[Fault]:
    earlier: dict[str, Step] = {}
    places = {step.id: place for place, step in reversed(list(enumerate(definition.steps)))}
    for place, step in enumerate(definition.steps):
        path: Path = ("steps", place)
        if step.id in earlier:
            yield Fault((*path, "id"), f"step {step.id} is there already, as steps[{places[step.id]}]")
        scope = _Scope(definition.inputs, earlier, places)
        yield from chain(_run_faults(step, path), _with_faults(step, path))
        for where, value in _values(step):
            yield from scope.faults((*path, *where), value)
        if step.when is not None:
            yield from scope.condition_faults((*path, "when"), step.when)
        earlier[step.id] = step
    scope = _Scope(definition.inputs, earlier, places)
    for name, text in definition.outputs.items():
        yield from scope.faults(("outputs", name), text)


def _run_faults(step: Step, path: Path) -> Iterator[Fault]:
    if OPEN in step.run:
        yield Fault((*path, "run"), _IN_RUN[step.runner])
    elif step.runner == "python":
        module, colon, function = step.run.partition(":")
        if not colon or not all(part.isidentifier() for part in (*module.split("."), *function.split("."))):
            yield Fault((*path, "run"), "is not module:function")


def _with_faults(step: Step, path: Path) -> Iterator[Fault]:
    if step.runner == "shell" and step.with_:
        yield Fault((*path, "with"), "runner shell takes none; use env")
    if step.runner == "exec":
        for key in step.with_:
            if key != "args":
                yield Fault((*path, "with", key), "runner exec knows only args")
        args = step.with_.get("args", [])
        if not isinstance(args, list) or not all(isinstance(argument, str) for argument in args):
            yield Fault((*path, "with", "args"), "must be a list of texts")
    if step.runner == "python":
        if step.stdin is not None:
            yield Fault((*path, "stdin"), "runner python gives its function none; use with")
        for key in step.with_:
            if not key.isidentifier():
                yield Fault((*path, "with", key), "cannot name an argument")


def _values(step: Step) -> Iterator[tuple[Path, Any]]:
    for name, text in step.env.items():
        yield ("env", name), text
    for name, value in step.with_.items():
        yield ("with", name), value
    if step.stdin is not None:
        yield ("stdin",), step.stdin


@dataclass(frozen=True)
class _Scope:
    """What can be referred to at one place of a definition."""

    inputs: Mapping[str, Any]
    earlier: Mapping[str, Step]
    places: Mapping[str, int]

    def faults(self, path: Path, value: Any) -> Iterator[Fault]:
        """Check all references in a value."""
        try:
            found = references_in(value)
        except ValueError as error:
            yield Fault(path, str(error))
        else:
            yield from (Fault(path, problem) for reference in found if (problem := self.problem(reference)))

    def condition_faults(self, path: Path, text: str) -> Iterator[Fault]:
        """Check a step's condition."""
        try:
            comparison = comparison_of(text)
        except ValueError as error:
            yield Fault(path, str(error))
            return
        for operand in comparison.operands:
            if isinstance(operand, Reference) and (problem := self.problem(operand)):
                yield Fault(path, problem)
                return
        if problem := self._mismatch(comparison):
            yield Fault(path, problem)

    def problem(self, reference: Reference) -> str | None:
        """Return what is wrong with a reference."""
        if reference.field is None:
            return None if reference.name in self.inputs else _unknown("input", reference.name, self.inputs)
        step = self.earlier.get(reference.name)
        if step is None:
            if reference.name in self.places:
                return f"{reference}: step {reference.name} has not run by then; only earlier ones can be referred to"
            return _unknown("step", reference.name, self.earlier)
        fields = [*FIELDS, RESULT] if step.runner == "python" else [*FIELDS]
        if reference.field in fields:
            return None
        return f"there is no field {reference.field} of {step.runner} steps; known: {', '.join(fields)}"

    def _mismatch(self, comparison: Comparison) -> str | None:
        left, right = map(self._kind, comparison.operands)
        if _ANY not in (left, right) and left != right:
            return f"compares {left} with {right}"
        if comparison.operator not in ("==", "!=") and not {left, right} <= {"number", _ANY}:
            return f"{comparison.operator} compares numbers, not {left}"
        return None

    def _kind(self, operand: Operand) -> str:
        if not isinstance(operand, Reference):
            return _kind_of(operand.value)
        if operand.field is None:
            return _KINDS[self.inputs[operand.name].type]
        return FIELDS.get(operand.field, _ANY)


def _kind_of(value: object) -> str:
    return "true or false" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    names: Sequence[str] = list(known)
    close = get_close_matches(name, names, n=1)
    if close:
        return f"there is no {what} {name}; did you mean {close[0]}?"
    return f"there is no {what} {name}; " + ("known: " + ", ".join(names[:20]) if names else "there are none here")

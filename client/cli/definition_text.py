"""A workflow definition in words: what its writer can compare with what was meant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from toolcrib.client.cli.format import setting
from toolcrib.client.cli.output import one_line

if TYPE_CHECKING:
    from toolcrib.definitions.model import Input, Step, WorkflowDefinition


def described(definition: WorkflowDefinition) -> Iterator[str]:
    """Return the lines that say how a definition was understood: commands whole, values as JSON."""
    about = f": {definition.description}" if definition.description else ""
    yield one_line(f"{definition.reference}{about}")
    if definition.inputs:
        yield "inputs"
        yield from (one_line(f"  {name}: {_input(given)}") for name, given in definition.inputs.items())
    for number, step in enumerate(definition.steps, start=1):
        yield one_line(f"step {number}, {step.id}: {_step(step)}")
        yield from (f"  | {one_line(line)}" for line in step.run.rstrip("\n").split("\n"))
        yield from (one_line(f"  {name}: {json.dumps(value, ensure_ascii=False)}") for name, value in _values(step))
    if definition.outputs:
        yield "outputs"
        for name, text in definition.outputs.items():
            yield one_line(f"  {name}: {json.dumps(text, ensure_ascii=False)}")


def _input(given: Input) -> str:
    default = "required" if given.default is None else f"default {json.dumps(given.default, ensure_ascii=False)}"
    about = f"; {given.description}" if given.description else ""
    return f"{given.type}, {default}{about}"


def _step(step: Step) -> str:
    words: list[str] = [step.runner]
    if step.when is not None:
        words.append(f"when {step.when}")
    if step.timeout is not None:
        words.append(f"timeout {setting(step.timeout)}")
    if step.retry.max_attempts > 1:
        words.append(f"up to {step.retry.max_attempts} attempts")
    if step.continue_on_error:
        words.append("continue on error")
    return ", ".join(words)


def _values(step: Step) -> Iterator[tuple[str, object]]:
    yield from ((f"env {name}", text) for name, text in step.env.items())
    yield from ((f"with {name}", value) for name, value in step.with_.items())
    if step.stdin is not None:
        yield "stdin", step.stdin

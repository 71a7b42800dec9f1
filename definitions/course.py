"""How a definition runs: which step is next, with what, and what comes of it all. Decides, and runs nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolcrib.definitions.model import Step, WorkflowDefinition
from toolcrib.definitions.references import comparison_of
from toolcrib.definitions.steps import FAILED, SKIPPED, StepEnd, StepOrder
from toolcrib.definitions.values import ValueFault, Values
from toolcrib.scheduling.request import MAX_RESULT_BYTES

MAX_STEP_BYTES: Final = 1024 * 1024
"""Of variables, arguments and input of one step, together."""
LAST_PRINTED: Final = 8 * 1024
"""Characters of what a step has printed that stay in the result of a task that failed by it."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a run has failed."""

    message: str
    result: dict[str, Any]


def unfinished(ends: Sequence[StepEnd]) -> dict[str, Any]:
    """Return the result of a run that got no further than this: as of one that is done, with what was printed last."""
    result = _result({}, ends)
    if ends:
        printed = {"stdout": ends[-1].stdout[-LAST_PRINTED:], "stderr": ends[-1].stderr[-LAST_PRINTED:]}
        result["steps"][-1] |= printed
    return result


def _result(outputs: dict[str, Any], ends: Sequence[StepEnd]) -> dict[str, Any]:
    return {"outputs": outputs, "steps": [end.summary() for end in ends]}


class Course:
    """One run of a definition."""

    def __init__(self, definition: WorkflowDefinition, inputs: Mapping[str, Any]) -> None:
        """`inputs` are all of the definition's, checked."""
        self._definition = definition
        self._ends: dict[str, StepEnd] = {}
        self._values = Values(inputs, self._ends)
        self._failed: StepEnd | None = None

    @property
    def ends(self) -> list[StepEnd]:
        """What came of the steps up to now."""
        return list(self._ends.values())

    def next(self) -> StepOrder | None:
        """Return the step to run next; None if the run is over. Steps before it that are not to run are skipped."""
        while self._failed is None and len(self._ends) < len(self._definition.steps):
            step = self._definition.steps[len(self._ends)]
            try:
                if step.when is None or self._values.holds(comparison_of(step.when)):
                    return self._order(step)
                end = StepEnd(id=step.id, outcome=SKIPPED)
            except ValueFault as fault:
                end = StepEnd(id=step.id, outcome=FAILED, problem=f"it cannot run: {fault}")
            self.record(end)
        return None

    def record(self, end: StepEnd) -> None:
        """Take note of what came of the step that was next."""
        step = self._definition.steps[len(self._ends)]
        self._ends[step.id] = end
        if end.outcome == FAILED and not step.continue_on_error:
            self._failed = end

    def outcome(self) -> dict[str, Any] | Failure:
        """Return the result of a run that is over: `{outputs, steps}`."""
        if self._failed is not None:
            return self._failure(f"step {self._failed.id} failed: {self._failed.problem}")
        try:
            result = _result(self._values.outputs(self._definition.outputs), self.ends)
        except ValueFault as fault:
            return self._failure(str(fault))
        size = len(json.dumps(result, ensure_ascii=False).encode(errors="replace"))
        if size > MAX_RESULT_BYTES:
            return self._failure(f"outputs: the result has {size:,} bytes, the limit is {MAX_RESULT_BYTES:,}")
        return result

    def _failure(self, message: str) -> Failure:
        return Failure(message=message, result=unfinished(self.ends))

    def _order(self, step: Step) -> StepOrder:
        stdin, stdin_log = (None, None) if step.stdin is None else self._values.stdin(step.stdin)
        order = StepOrder(
            id=step.id,
            number=len(self._ends) + 1,
            of=len(self._definition.steps),
            runner=step.runner,
            run=step.run,
            env={name: self._values.text(text) for name, text in step.env.items()},
            arguments=self._arguments(step),
            stdin=stdin,
            stdin_log=stdin_log,
            timeout=step.timeout,
            max_attempts=step.retry.max_attempts,
        )
        size = len(json.dumps([order.env, order.arguments, order.stdin]))
        if size > MAX_STEP_BYTES:
            raise ValueFault(f"env, with and stdin have {size:,} bytes with what they refer to, too many")
        return order

    def _arguments(self, step: Step) -> dict[str, Any]:
        if step.runner == "exec":  # a program knows texts only
            return {name: [self._values.text(text) for text in texts] for name, texts in step.with_.items()}
        return {name: self._values.filled(value) for name, value in step.with_.items()}

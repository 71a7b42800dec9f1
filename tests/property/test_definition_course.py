"""Runs of definitions, whatever their steps print and return."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolcrib.definitions.course import MAX_STEP_BYTES, Course, Failure
from toolcrib.definitions.model import WorkflowDefinition
from toolcrib.definitions.steps import StepEnd
from toolcrib.scheduling.request import MAX_RESULT_BYTES

INPUTS = {
    "text": {"default": "t"},
    "number": {"type": "number", "default": 1},
    "truth": {"type": "boolean", "default": True},
}
FIELDS = st.sampled_from(["stdout", "stderr", "exit_code", "outcome", "result"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
PRINTED = st.text(max_size=9) | st.sampled_from(["x" * 40_000, "\0" * 16_000, "\n\n", "é" * 8_000])
ENDS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "outcome": st.sampled_from(["done", "failed"]),
        "exit_code": st.none() | st.integers(0, 255),
        "stdout": PRINTED,
        "stderr": PRINTED,
        "omitted_stdout_bytes": st.sampled_from([0, 0, 5_000_000]),
        "result": JSON,
    }
)


@st.composite
def definitions(draw: st.DrawFn) -> WorkflowDefinition:
    """Return a definition of up to six steps, each of which may refer to those before it."""
    steps: list[dict[str, Any]] = []

    def reference() -> str:
        earlier = [step["id"] for step in steps]
        if not earlier or draw(st.booleans()):
            return f"inputs.{draw(st.sampled_from(list(INPUTS)))}"
        return f"steps.{draw(st.sampled_from(earlier))}.{draw(FIELDS)}"

    def template() -> str:
        return draw(st.sampled_from(["", "a "])) + f"${{{{ {reference()} }}}}" * draw(st.integers(1, 4))

    for number in range(draw(st.integers(1, 6))):
        step: dict[str, Any] = {"id": f"s{number}", "runner": "python", "run": "m:f"}
        step |= {"env": {"A": template()}, "with": {"a": template(), "b": [{"c": template()}]}}
        conditional = draw(st.booleans())
        if steps and conditional:
            operator = draw(st.sampled_from(["==", "!=", "<", ">="]))
            step["when"] = (
                f"${{{{ steps.{draw(st.sampled_from(steps))['id']}.result {operator} {draw(st.integers(0, 2))} }}}}"
            )
        steps.append(step | {"continue_on_error": draw(st.booleans())})
    outputs = {f"o{number}": template() for number in range(draw(st.integers(0, 3)))}
    return WorkflowDefinition.model_validate({"name": "d", "inputs": INPUTS, "steps": steps, "outputs": outputs})


@given(definitions(), st.data())
def test_every_run_ends_with_a_result_that_can_be_sent(definition: WorkflowDefinition, data: st.DataObject) -> None:
    """Each step is ordered at most once, in order and within the limits; nothing that steps leave breaks the run."""
    course = Course(definition, {"text": "t", "number": 1, "truth": True})
    ordered: list[int] = []
    while (order := course.next()) is not None:
        ordered.append(order.number)
        assert len(json.dumps([order.env, order.arguments, order.stdin])) <= MAX_STEP_BYTES
        course.record(StepEnd(id=order.id, attempts=1, stdout_log="steps/x", **data.draw(ENDS)))
    assert ordered == sorted(set(ordered))
    outcome = course.outcome()
    result = outcome.result if isinstance(outcome, Failure) else outcome
    assert len(json.dumps(result, ensure_ascii=False, allow_nan=False).encode()) <= MAX_RESULT_BYTES
    assert [step["id"] for step in result["steps"]] == [step.id for step in definition.steps[: len(result["steps"])]]
    failed = [end for end in course.ends if end.outcome == "failed"]
    fatal = [end for end in failed if not definition.steps[int(end.id[1:])].continue_on_error]
    assert isinstance(outcome, Failure) >= bool(fatal)

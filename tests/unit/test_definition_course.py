"""How a definition runs: what is next, with what, and what comes of it."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.definitions.course import Course, Failure
from toolcrib.definitions.inputs import checked_inputs
from toolcrib.definitions.model import WorkflowDefinition
from toolcrib.definitions.steps import StepEnd, StepOrder
from toolcrib.scheduling.errors import InvalidRequest

RESULT = "${{ steps.s1.result }}"
INPUTS = {
    "url": {"default": "http://x"},
    "count": {"type": "integer", "default": 3},
    "ratio": {"type": "number", "default": 0.5},
    "full": {"type": "boolean", "default": False},
}


def definition(*steps: dict[str, Any], **rest: Any) -> WorkflowDefinition:
    """Return a definition of these steps, each of which runs `x` if it does not say."""
    named = [{"id": f"s{number}", "run": "x", **step} for number, step in enumerate(steps, start=1)]
    return WorkflowDefinition.model_validate({"name": "d", "inputs": INPUTS, "steps": named, **rest})


def course(*steps: dict[str, Any], inputs: dict[str, Any] | None = None, **rest: Any) -> Course:
    """Return a run of such a definition."""
    made = definition(*steps, **rest)
    return Course(made, checked_inputs(made, inputs or {}))


def ended(run: Course, **end: Any) -> StepOrder:
    """Let the next step end so, and return what it was to do."""
    order = run.next()
    assert order is not None
    run.record(StepEnd(**{"id": order.id, "outcome": "done", "exit_code": 0, "attempts": 1, **end}))
    return order


def next_after(step: dict[str, Any], **end: Any) -> StepOrder | None:
    """Return what a second step is to do when the first, a function, ended so."""
    run = course({"runner": "python", "run": "m:f"}, step)
    ended(run, **end)
    return run.next()


def test_steps_run_in_order_and_know_their_place() -> None:
    """Each once, with what the definition says of it, until all have ended."""
    run = course({"timeout": "30s", "retry": {"max_attempts": 3}}, {"runner": "exec", "with": {"args": ["a"]}})
    first, second = ended(run), ended(run)
    assert (first.id, first.number, first.of, first.timeout, first.max_attempts) == ("s1", 1, 2, 30.0, 3)
    assert (second.id, second.number, second.runner, second.arguments) == ("s2", 2, "exec", {"args": ["a"]})
    assert run.next() is None
    assert run.outcome() == {"outputs": {}, "steps": [end.summary() for end in run.ends]}


@pytest.mark.parametrize(
    ("step", "field", "value"),
    [
        ({"env": {"A": "${{ inputs.url }}/${{ inputs.count }}"}}, "env", {"A": "http://x/3"}),
        ({"env": {"A": "${{ inputs.full }} ${{ inputs.ratio }}"}}, "env", {"A": "false 0.5"}),
        ({"env": {"A": "${{ steps.s1.stdout }}."}}, "env", {"A": "out\nput."}),
        ({"env": {"A": "${{ steps.s1.stderr }}${{ steps.s1.exit_code }}"}}, "env", {"A": "err0"}),
        ({"env": {"A": "${{ steps.s1.result }}"}}, "env", {"A": '{"a": [1, null]}'}),
        ({"runner": "exec", "with": {"args": ["${{ inputs.count }}"]}}, "arguments", {"args": ["3"]}),
        (
            {"runner": "python", "run": "m:g", "with": {"n": "${{ inputs.count }}", "l": [{"r": RESULT}]}},
            "arguments",
            {"n": 3, "l": [{"r": {"a": [1, None]}}]},
        ),
        ({"stdin": "${{ steps.s1.stdout }}"}, "stdin_log", "steps/s1-1.stdout"),
        ({"stdin": "${{ steps.s1.stderr }}"}, "stdin_log", "steps/s1-1.stderr"),
        ({"stdin": "<${{ steps.s1.stdout }}>"}, "stdin", "<out\nput\n\n>"),
        ({"stdin": "${{ inputs.count }}"}, "stdin", "3"),
        ({"stdin": "$(rm -rf /)"}, "stdin", "$(rm -rf /)"),
    ],
)
def test_references_become_what_they_refer_to(step: dict[str, Any], field: str, value: Any) -> None:
    """As text within a text; with its type if it stands alone in an argument; as all of it on standard input."""
    logs = {"stdout_log": "steps/s1-1.stdout", "stderr_log": "steps/s1-1.stderr"}
    order = next_after(step, stdout="out\nput\n\n", stderr="err\n", **logs, result={"a": [1, None]})
    assert order is not None
    assert getattr(order, field) == value


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ("steps.s1.exit_code == 0", True),
        ("steps.s1.exit_code != 0", False),
        ("0 == steps.s1.exit_code", True),
        ("steps.s1.exit_code < 1", True),
        ("steps.s1.exit_code >= 1", False),
        ("inputs.ratio > 0.4", True),
        ("inputs.count <= 3", True),
        ("steps.s1.stdout == 'yes'", True),
        ("steps.s1.outcome == 'done'", True),
        ("inputs.full == false", True),
        ("inputs.full != true", True),
        ("steps.s1.result == 1", False),
        ("steps.s1.result != 1", True),
        ("steps.s1.result == true", True),
        ("steps.s1.result > 0", False),
        ("steps.s2.exit_code == 0", False),
        ("steps.s2.exit_code != 0", True),
        ("steps.s2.exit_code < 1", False),
        ("steps.s2.outcome == 'skipped'", True),
    ],
)
def test_a_step_whose_condition_does_not_hold_is_skipped(when: str, holds: bool) -> None:
    """Values of different kinds are never equal; what a skipped step has not got is equal to nothing."""
    run = course(
        {"runner": "python", "run": "m:f"},
        {"when": "${{ inputs.count == 0 }}"},
        {"when": f"${{{{ {when} }}}}"},
    )
    ended(run, stdout="yes\n", result=True)
    assert (run.next() is not None) is holds
    assert [end.outcome for end in run.ends] == ["done", "skipped"] + ["skipped"] * (not holds)


def test_a_failed_step_ends_the_run() -> None:
    """The message says which and why, the result how far it got and what was printed last."""
    run = course({}, {}, outputs={"a": "x"})
    ended(run, outcome="failed", exit_code=2, stdout="a", stderr="b" * 9000, problem="exited with code 2: no")
    assert run.next() is None
    failure = run.outcome()
    assert isinstance(failure, Failure)
    assert failure.message == "step s1 failed: exited with code 2: no"
    assert failure.result["outputs"] == {}
    (step,) = failure.result["steps"]
    assert (step["id"], step["exit_code"], step["stdout"], len(step["stderr"])) == ("s1", 2, "a", 8192)


def test_unless_it_says_otherwise() -> None:
    """With `continue_on_error` the others run, and the run may be done."""
    run = course({"continue_on_error": True}, {"when": "${{ steps.s1.outcome == 'failed' }}"})
    ended(run, outcome="failed", exit_code=None, problem="it took longer than 1 s")
    ended(run)
    assert run.next() is None
    outcome = run.outcome()
    assert not isinstance(outcome, Failure)
    assert [step["outcome"] for step in outcome["steps"]] == ["failed", "done"]


def test_outputs_keep_their_types() -> None:
    """One that is nothing but a reference is what that stands for; others are texts."""
    run = course(
        {"runner": "python", "run": "m:f"},
        outputs={
            "result": "${{ steps.s1.result }}",
            "code": "${{ steps.s1.exit_code }}",
            "text": "${{ inputs.count }}!",
        },
    )
    ended(run, result=[1])
    outcome = run.outcome()
    assert not isinstance(outcome, Failure)
    assert outcome["outputs"] == {"result": [1], "code": 0, "text": "3!"}


@pytest.mark.parametrize(
    "step",
    [
        {"env": {"A": "${{ steps.s1.stdout }}"}},
        {"when": "${{ steps.s1.stdout == 'x' }}"},
        {"stdin": "all: ${{ steps.s1.stdout }}"},
        {"runner": "exec", "with": {"args": ["${{ steps.s1.stdout }}"]}},
    ],
)
def test_what_was_cut_is_not_taken_for_the_whole(step: dict[str, Any]) -> None:
    """A step that would get the end of an output for all of it fails instead, and is told where the whole is."""
    run = course({}, step)
    ended(run, stdout="end", omitted_stdout_bytes=5_000_000, stdout_log="steps/s1-1.stdout")
    assert run.next() is None
    failure = run.outcome()
    assert isinstance(failure, Failure)
    assert failure.message == (
        "step s2 failed: it cannot run: steps.s1.stdout is too long for here, only the end of it is kept; give it to a "
        "step as the whole of its stdin, or read it from $TOOLCRIB_ARTIFACTS/steps/s1-1.stdout"
    )


@pytest.mark.parametrize("printed", [{"stdout": "all of it"}, {"stdout": "end", "omitted_stdout_bytes": 70_000_000}])
def test_what_is_not_kept_as_a_whole_is_no_input(printed: dict[str, Any]) -> None:
    """There was no room for the log: the step that would read it fails, and does not get nothing instead."""
    run = course({}, {"stdin": "${{ steps.s1.stdout }}"})
    ended(run, **printed)
    assert run.next() is None
    failure = run.outcome()
    assert isinstance(failure, Failure)
    assert "steps.s1.stdout is not there as a whole" in failure.message


def test_of_a_step_that_printed_nothing_the_input_is_empty() -> None:
    """It has no log, and none is missing."""
    order = next_after({"stdin": "${{ steps.s1.stdout }}"})
    assert order is not None
    assert (order.stdin, order.stdin_log) == (None, None)


def test_standard_error_is_cut_by_itself() -> None:
    """That it is kept in part says nothing of the standard output, and the other way round."""
    run = course({}, {"env": {"A": "${{ steps.s1.stdout }}"}}, {"env": {"A": "${{ steps.s1.stderr }}"}})
    ended(run, stdout="all", stderr="end", omitted_stderr_bytes=1, stderr_log="steps/s1-1.stderr")
    assert ended(run).env == {"A": "all"}
    assert run.next() is None
    assert run.ends[2].problem is not None
    assert "steps.s1.stderr is too long for here" in run.ends[2].problem


def test_an_output_that_was_cut_is_said_to_be() -> None:
    """In the result it is as it is kept, and the step says how much was omitted."""
    run = course({}, outputs={"all": "${{ steps.s1.stdout }}"})
    ended(run, stdout="end\n", omitted_stdout_bytes=5_000_000, stdout_log="steps/s1-1.stdout")
    outcome = run.outcome()
    assert not isinstance(outcome, Failure)
    assert outcome["outputs"] == {"all": "end"}
    assert outcome["steps"][0]["omitted_stdout_bytes"] == 5_000_000
    assert outcome["steps"][0]["logs"] == ["steps/s1-1.stdout"]


@pytest.mark.parametrize(
    ("steps", "rest", "said"),
    [
        (
            [{"env": {"A": "${{ steps.s1.stdout }}" * 20}}],
            {},
            "step s2 failed: it cannot run: is longer than 131,071 bytes with what it refers to",
        ),
        (
            [{"env": {f"A{n}": "${{ steps.s1.stdout }}" for n in range(150)}}],
            {},
            "step s2 failed: it cannot run: env, with and stdin have 1,201,",
        ),
        ([], {"outputs": {"a": "${{ steps.s1.stdout }}" * 20}}, "outputs.a: is longer than 131,071 bytes"),
        ([], {"outputs": {f"a{n}": "${{ steps.s1.stdout }}" for n in range(40)}}, "outputs: the result has 320,"),
    ],
)
def test_what_becomes_too_long_is_refused(steps: list[dict[str, Any]], rest: dict[str, Any], said: str) -> None:
    """No process takes it, and no workflow: the run fails, and says so."""
    run = course({}, *steps, **rest)
    ended(run, stdout="x" * 8000)
    assert run.next() is None
    failure = run.outcome()
    assert isinstance(failure, Failure)
    assert failure.message.startswith(said)


@pytest.mark.parametrize(
    ("given", "inputs"),
    [
        ({}, {"url": "http://x", "count": 3, "ratio": 0.5, "full": False}),
        (
            {"url": "NO", "count": "7", "ratio": "1e3", "full": "true"},
            {"url": "NO", "count": 7, "ratio": 1000.0, "full": True},
        ),
        ({"count": 7, "ratio": 2, "full": True}, {"url": "http://x", "count": 7, "ratio": 2, "full": True}),
    ],
)
def test_inputs_are_given_as_text_or_in_their_type(given: dict[str, Any], inputs: dict[str, Any]) -> None:
    """`--input` gives texts, `--inputs` JSON; what is not given has its default."""
    assert checked_inputs(definition({}), given) == inputs


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ulr": "x"}, "inputs.ulr: d@1 has no such input; did you mean url?"),
        ({"zzz\n": "x"}, "inputs.'zzz\\n': d@1 has no such input; it takes: url, count, ratio, full"),
        ({"count": "many"}, "inputs.count: 'many' is no integer"),
        ({"count": 1.5}, "inputs.count: 1.5 is no integer"),
        ({"count": True}, "inputs.count: True is no integer"),
        ({"url": 5}, "inputs.url: 5 is no string"),
        ({"ratio": "nan"}, "inputs.ratio: 'nan' is no number"),
        ({"full": "yes"}, "inputs.full: 'yes' is no boolean"),
        ({"full": {"a": 1}}, "inputs.full: {'a': 1} is no boolean"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(given: dict[str, Any], said: str) -> None:
    """By name, before anything runs."""
    with pytest.raises(InvalidRequest) as refused:
        checked_inputs(definition({}), given)
    assert refused.value.message == said


def test_an_input_without_a_default_has_to_be_given() -> None:
    """Nothing is made up for it."""
    made = definition({}, inputs={"serial": {}})
    with pytest.raises(InvalidRequest, match=r"inputs\.serial: d@1 needs it, a string"):
        checked_inputs(made, {})
    assert checked_inputs(made, {"serial": ""}) == {"serial": ""}

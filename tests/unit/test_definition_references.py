"""References: how they are written, where they may stand, and what is known of them before anything runs."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from toolcrib.definitions.model import WorkflowDefinition
from toolcrib.definitions.references import Comparison, Literally, Reference, comparison_of, parts_of


def refused(step: dict[str, object] | None = None, **rest: object) -> str:
    """Return what is wrong with a definition whose second step of three, `b`, has these fields."""
    definition = {
        "name": "x",
        "inputs": {"url": {}, "count": {"type": "integer"}, "full": {"type": "boolean"}},
        "steps": [
            {"id": "a", "run": "x"},
            {"id": "b", "run": "m:f" if (step or {}).get("runner") == "python" else "x", **(step or {})},
            {"id": "c", "run": "m:f", "runner": "python"},
        ],
        **rest,
    }
    with pytest.raises(ValidationError) as error:
        WorkflowDefinition.model_validate(definition)
    (fault,) = error.value.errors()
    return ".".join(map(str, fault["ctx"]["path"])) + ": " + fault["msg"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("plain }} text $ {{ x }}", ("plain }} text $ {{ x }}",)),
        ("${{ inputs.url }}", (Reference("url"),)),
        ("${{inputs.url}}", (Reference("url"),)),
        ("a${{ steps.s-1.exit_code }}b${{ inputs.x }}", ("a", Reference("s-1", "exit_code"), "b", Reference("x"))),
    ],
)
def test_texts_consist_of_text_and_references(text: str, parts: tuple[str | Reference, ...]) -> None:
    """Blanks within the braces do not matter; braces without the dollar sign are text."""
    assert parts_of(text) == parts


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "url",
        "inputs",
        "inputs.",
        "inputs.a.b",
        "steps.a",
        "steps.a.b.c",
        "env.HOME",
        "inputs['url']",
        "inputs.url + 1",
        "len(inputs.url)",
        "inputs.url == 'x'",
        "__import__('os').system('id')",
        "inputs.url ${{ inputs.url",
        "secrets.TOKEN",
    ],
)
def test_nothing_else_is_understood(expression: str) -> None:
    """No code, no functions, no indices; a comparison is for conditions."""
    with pytest.raises(ValueError, match=r"is no reference; there are inputs\.NAME and steps\.ID\.FIELD"):
        parts_of(f"${{{{ {expression} }}}}")


@pytest.mark.parametrize(
    ("text", "comparison"),
    [
        ("${{ steps.a.exit_code == 0 }}", Comparison(Reference("a", "exit_code"), "==", Literally(0))),
        ("${{ inputs.url!='a b' }}", Comparison(Reference("url"), "!=", Literally("a b"))),
        (' ${{ "it\'s" == inputs.url }} ', Comparison(Literally("it's"), "==", Reference("url"))),
        ("${{ inputs.n >= -1.5 }}", Comparison(Reference("n"), ">=", Literally(-1.5))),
        ("${{ inputs.full == true }}", Comparison(Reference("full"), "==", Literally(True))),
    ],
)
def test_conditions_are_comparisons(text: str, comparison: Comparison) -> None:
    """Of references, numbers, texts in quotes, true and false."""
    assert comparison_of(text) == comparison


@pytest.mark.parametrize(
    "text",
    [
        "",
        "true",
        "inputs.full == true",
        "${{ inputs.full }}",
        "${{ inputs.full == true }} and more",
        "${{ inputs.full == true && inputs.url == 'x' }}",
        "${{ inputs.n == 1 == 2 }}",
        "${{ not inputs.full }}",
        "${{ inputs.n = 1 }}",
        "${{ inputs.n == }}",
        "${{ inputs.n == (1) }}",
        "${{ inputs.url == open('/etc/passwd') }}",
        "${{ inputs.n == 1",
        "${{ " + "a" * 501 + " == 1 }}",
    ],
)
def test_a_condition_is_exactly_one_comparison(text: str) -> None:
    """Whatever else it is, is refused."""
    with pytest.raises(ValueError, match=r"comparison|is not closed|is no reference|characters"):
        comparison_of(text)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (
            {"run": "curl ${{ inputs.url }}"},
            "steps.1.run: no reference can stand in a command line: what it brings would",
        ),
        (
            {"run": "${{ broken"},
            "steps.1.run: no reference can stand in a command line: what it brings would be run; use",
        ),
        ({"run": "${{ inputs.url }}", "runner": "exec"}, "steps.1.run: no reference can stand here; use with:"),
        (
            {"run": "${{ inputs.url }}", "runner": "python"},
            "steps.1.run: no reference can stand here; use with or env",
        ),
        ({"env": {"A": "${{ inputs.ulr }}"}}, "steps.1.env.A: there is no input ulr; did you mean url?"),
        ({"stdin": "${{ inputs.zzz }}"}, "steps.1.stdin: there is no input zzz; known: url, count, full"),
        ({"stdin": "${{ steps.c.stdout }}"}, "steps.1.stdin: steps.c.stdout: step c has not run by then; only earlier"),
        ({"stdin": "${{ steps.b.stdout }}"}, "steps.1.stdin: steps.b.stdout: step b has not run by then; only earlier"),
        ({"stdin": "${{ steps.zzz.stdout }}"}, "steps.1.stdin: there is no step zzz; known: a"),
        ({"stdin": "${{ steps.a.stdin }}"}, "steps.1.stdin: there is no field stdin of shell steps; known: stdout,"),
        ({"stdin": "${{ steps.a.result }}"}, "steps.1.stdin: there is no field result of shell steps; known:"),
        (
            {"runner": "exec", "with": {"args": ["a", "${{ inputs.x }}"]}},
            "steps.1.with.args: there is no input x; known:",
        ),
        (
            {"runner": "python", "with": {"a": {"b": ["${{ inputs.x }}"]}}},
            "steps.1.with.a: there is no input x; known:",
        ),
        ({"when": "${{ steps.a.exit_code == 'x' }}"}, "steps.1.when: compares number with text"),
        ({"when": "${{ inputs.url < 'x' }}"}, "steps.1.when: < compares numbers, not text"),
        ({"when": "${{ inputs.full >= true }}"}, "steps.1.when: >= compares numbers, not true or false"),
        ({"when": "${{ inputs.full == 1 }}"}, "steps.1.when: compares true or false with number"),
        (
            {"when": "${{ steps.c.exit_code == 1 }}"},
            "steps.1.when: steps.c.exit_code: step c has not run by then; only",
        ),
    ],
)
def test_what_a_step_refers_to_is_there_by_then(step: dict[str, object], said: str) -> None:
    """Inputs and earlier steps, their fields, and of a kind that can be compared. In commands there are none."""
    assert refused(step).startswith(said)


def test_outputs_may_refer_to_every_step() -> None:
    """They are put together at the end; a reference to nothing is refused there as well."""
    assert refused(outputs={"ok": "${{ steps.c.result }}", "no": "${{ steps.d.stdout }}"}) == (
        "outputs.no: there is no step d; known: a, b, c"
    )


def test_a_definition_survives_being_sent() -> None:
    """As JSON it is read back as the same: so it gets to the workflow that runs it."""
    definition = WorkflowDefinition.model_validate(
        {
            "name": "x",
            "inputs": {"n": {"type": "number", "default": 3}},
            "steps": [
                {"id": "a", "run": "m:f", "runner": "python", "with": {"n": "${{ inputs.n }}", "l": [1, {"a": None}]}},
                {"id": "b", "run": "x", "when": "${{ steps.a.result == 3 }}", "timeout": "5m"},
            ],
        }
    )
    sent = definition.model_dump_json()
    assert WorkflowDefinition.model_validate_json(sent) == definition
    assert json.loads(sent)["steps"][0]["with"] == {"n": "${{ inputs.n }}", "l": [1, {"a": None}]}

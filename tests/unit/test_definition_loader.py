"""What a workflow definition may say, and what is said of a file that is none."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from toolcrib.definitions.loader import parse_definition
from toolcrib.definitions.model import WorkflowDefinition
from toolcrib.scheduling.errors import InvalidRequest

EXAMPLE = """\
name: smoke
version: "1"
inputs:
  url: {type: string, default: "http://127.0.0.1:8000"}
steps:
  - id: fetch
    runner: shell
    run: curl -sf "$URL"
    env: {URL: "${{ inputs.url }}"}
    timeout: 30s
    retry: {max_attempts: 3}
  - id: size
    runner: shell
    run: wc -c
    stdin: "${{ steps.fetch.stdout }}"
    when: "${{ steps.fetch.exit_code == 0 }}"
outputs:
  bytes: "${{ steps.size.stdout }}"
"""
ONE = "name: x\nsteps: [{id: s, run: echo}]\n"


def loaded(text: str | bytes) -> WorkflowDefinition:
    """Return the definition in a file with that content."""
    return parse_definition(text if isinstance(text, bytes) else text.encode(), Path("def.yaml"))


def refusal(text: str | bytes) -> str:
    """Return what is said of a file with that content: in two seconds of work, in one line, with its place."""
    begin = time.process_time()
    with pytest.raises(InvalidRequest) as refused:
        loaded(text)
    assert time.process_time() - begin < 2
    error = refused.value
    assert error.exit_code == 4
    assert error.hint
    assert error.message.isprintable()
    assert len(error.message) < 500
    file, line, column, said = error.message.split(":", 3)
    assert (file, line.isdecimal(), column.isdecimal()) == ("def.yaml", True, True)
    return f"{line}:{column}:{said}"


def step(body: str) -> str:
    """Return a definition whose second step has `body`, beginning at line 5, column 13."""
    return (
        f"name: x\ninputs: {{url: {{}}, n: {{type: integer}}}}\nsteps:\n  - {{id: a, run: x}}\n  - {{id: b, {body}}}\n"
    )


def test_the_documented_example() -> None:
    """Every key means what the documentation says."""
    definition = loaded(EXAMPLE)
    fetch, size = definition.steps
    assert (definition.reference, definition.inputs["url"].default) == ("smoke@1", "http://127.0.0.1:8000")
    assert (fetch.id, fetch.runner, fetch.run, fetch.timeout, fetch.retry.max_attempts) == (
        "fetch",
        "shell",
        'curl -sf "$URL"',
        30.0,
        3,
    )
    assert (size.stdin, size.when) == ("${{ steps.fetch.stdout }}", "${{ steps.fetch.exit_code == 0 }}")
    assert definition.outputs == {"bytes": "${{ steps.size.stdout }}"}


@pytest.mark.parametrize("kind", ["bom", "crlf", "no newline at the end", "yaml 1.2"])
def test_it_may_be_written_on_any_machine(kind: str) -> None:
    """A byte order mark, carriage returns, no last line break and a version of YAML change nothing."""
    changed = {
        "bom": "\ufeff" + EXAMPLE,
        "crlf": EXAMPLE.replace("\n", "\r\n"),
        "no newline at the end": EXAMPLE.rstrip(),
        "yaml 1.2": f"%YAML 1.2\n---\n{EXAMPLE}",
    }[kind]
    assert loaded(changed) == loaded(EXAMPLE)


@pytest.mark.parametrize(
    "written", ["NO", "off", "y", "yes", "3.10", "1e3", "10", "034", "0x1F", "2026-11-30", "22:30"]
)
def test_scalars_stay_what_was_written(written: str) -> None:
    """With quotes or without, a text is never another one because YAML has a number, date or truth of that look."""
    step = loaded(f"name: x\nsteps: [{{id: s, run: {written}, env: {{A: {written}}}}}]\n").steps[0]
    assert (step.run, step.env["A"]) == (written, written)
    assert loaded(f"name: x\nsteps: [{{id: s, run: '{written}', env: {{A: '{written}'}}}}]\n").steps[0] == step


@pytest.mark.parametrize("version", ["1", "1.10", "3.10", "1e3", "2026-11-30"])
def test_a_version_needs_no_quotes(version: str) -> None:
    """`1.10` is not `1.1`."""
    assert loaded(f"{ONE}version: {version}\n").reference == f"x@{version}"


def test_anchors_merge_keys_and_a_place_for_them() -> None:
    """A step may take over what another mapping has; keys that begin with x- are the writer's own."""
    text = """\
x-base: &base {runner: shell, timeout: 10s}
name: anchors
steps:
  - {<<: *base, id: one, run: echo 1}
  - {<<: *base, id: two, run: echo 2, timeout: 20s}
"""
    assert [(step.id, step.timeout) for step in loaded(text).steps] == [("one", 10.0), ("two", 20.0)]


@pytest.mark.parametrize(
    ("written", "seconds"), [("30s", 30), ("30m", 1800), ("1h30m", 5400), ("PT5M", 300), ("90", 90), ("0.5", 0.5)]
)
def test_timeouts_are_durations(written: str, seconds: float) -> None:
    """As everywhere in toolcrib."""
    assert loaded(step(f"run: x, timeout: {written}")).steps[1].timeout == seconds


def test_inputs_have_types() -> None:
    """A default is of its input's type, whether it is written as text or not."""
    inputs = loaded(
        f"{ONE}inputs: {{s: {{default: 3.10}}, i: {{type: integer, default: 7}}, n: {{type: number, default: 1e3}},"
        " b: {type: boolean, default: true}, needed: {}}\n"
    ).inputs
    assert [inputs[name].default for name in ("s", "i", "n", "b", "needed")] == ["3.10", 7, 1000.0, True, None]


def test_two_hundred_steps() -> None:
    """They load, and each may refer to the one before it."""
    steps = "".join(f"  - id: s{n}\n    run: cat\n    stdin: ${{{{ steps.s{n - 1}.stdout }}}}\n" for n in range(1, 200))
    assert len(loaded(f"name: long\nsteps:\n  - {{id: s0, run: echo}}\n{steps}").steps) == 200


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "1:1: the file is empty"),
        (b"# only a comment\n", "1:1: the file is empty"),
        (b"---\n...\n", "1:1: the file is empty"),
        (b"[]\n", "1:1: must be a mapping"),
        (b"false\n", "1:1: must be a mapping"),
        (b"0\n", "1:1: must be a mapping"),
        (b"''\n", "1:1: must be a mapping"),
        (b"hello\n", "1:1: must be a mapping"),
        (b"name: x\nsteps:\n", "2:1: steps: is empty"),
        (b"name: x\nsteps: []\n", "2:8: steps: has no entries"),
        (b"name: x\nsteps: {}\n", "2:8: steps: must be a list"),
        (b"name: x\nsteps: echo hi\n", "2:8: steps: must be a list"),
        (b"name: x\nsteps:\n  -\n  - {id: s, run: x}\n", "3:4: steps[0]: is empty"),
        (b"name: ''\nsteps: [{id: s, run: ''}]\n", "1:7: name: '' is not 1 to 64 of A-Z a-z 0-9 . _ : -"),
        (b"name: x\nsteps: [{id: s, run: ''}]\n", "2:22: steps[0].run: is blank"),
        (
            b"name: x\nsteps: [{id: s, run: null}]\n",
            "2:22: steps[0].run: null means nothing; put it in quotes if it is a text",
        ),
        (
            b"name: x\nsteps: [{id: s, run: ~}]\n",
            "2:22: steps[0].run: ~ means nothing; put it in quotes if it is a text",
        ),
        (b"steps: [{id: s, run: x}]\n", "1:1: has no name"),
        (b"name: x\n", "1:1: has no steps"),
        (b"name: x\nsteps: [{run: x}]\n", "2:9: steps[0]: has no id"),
        (
            b"name: x\nsteps: [{name: s, run: x}]\n",
            "2:10: steps[0].name: unknown key; known: id, runner, run, env, with,",
        ),
    ],
)
def test_nothing_there(content: bytes, said: str) -> None:
    """Whatever is missing or empty is refused, each with its own reason: nothing runs without work."""
    assert refusal(content).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("on: yes\n" + ONE, "1:1: on: unknown key; known: name, version, description, inputs, steps, outputs"),
        (ONE + "step: []\n", "3:1: step: unknown key; did you mean steps?"),
        ("name: x\nname: y\n", "2:1: name: given twice; the first one is on line 1"),
        (step("run: x, timeout: 1s, timeout: 2s"), "5:34: steps[1].timeout: given twice; the first one is on line 5"),
        (step("run: x, env: {A: a, A: b}"), "5:33: steps[1].env.A: given twice; the first one is on line 5"),
        (step("run: x, retry: {max: 3}"), "5:29: steps[1].retry.max: unknown key; known: max_attempts"),
        (ONE + "inputs: {a: {typ: string}}\n", "3:14: inputs.a.typ: unknown key; did you mean type?"),
        (step("run: x").replace("id: b", "id: a"), "5:10: steps[1].id: step a is there already, as steps[0]"),
        ("name: x\nsteps:\n\t- id: a\n", "3:1: a tab stands where spaces have to"),
        (
            step("run: x, runner: definition"),
            "5:29: steps[1].runner: 'definition' is not one of 'shell', 'exec' or 'python'",
        ),
        (step("run: x, timeout: 0"), "5:30: steps[1].timeout: '0' is not more than 0 and at most 30 days"),
        (
            step("run: x, timeout: -1"),
            "5:30: steps[1].timeout: '-1' is not a duration such as 30s, 5m, 1h30m, PT5M or a",
        ),
        (
            step("run: x, timeout: 5:00"),
            "5:30: steps[1].timeout: '5:00' is not a duration such as 30s, 5m, 1h30m, PT5M or",
        ),
        (step("run: x, timeout: 31d"), "5:30: steps[1].timeout: '31d' is not more than 0 and at most 30 days"),
        (
            step("run: x, retry: {max_attempts: 0}"),
            "5:43: steps[1].retry.max_attempts: input should be greater than or",
        ),
        (step("run: x, retry: {max_attempts: many}"), "5:43: steps[1].retry.max_attempts: 'many' is no whole number"),
        (step("run: x, retry: 3"), "5:28: steps[1].retry: must be a mapping"),
        (step("run: x, continue_on_error: yes"), "5:40: steps[1].continue_on_error: 'yes' is neither true nor false"),
        (step("run: [a, b]"), "5:18: steps[1].run: must be a text"),
        (step("run: x, env: [A]"), "5:26: steps[1].env: must be a mapping"),
        (step("run: x, env: {A-B: c}"), "5:27: steps[1].env.A-B: 'A-B' cannot name a variable: A-Z a-z 0-9 and _, not"),
        (
            step("run: x, env: {TOOLCRIB_X: c}"),
            "5:27: steps[1].env.TOOLCRIB_X: 'TOOLCRIB_X' is toolcrib's own; names with",
        ),
        (step("run: x, env: {A: {b: c}}"), "5:30: steps[1].env.A: must be a text"),
        (step('run: "a\\0b"'), "5:18: steps[1].run: has a NUL character"),
        (step("run: x, with: {a: b}"), "5:27: steps[1].with: runner shell takes none; use env"),
        (step("run: x, runner: exec, with: {argv: [b]}"), "5:48: steps[1].with.argv: runner exec knows only args"),
        (step("run: x, runner: exec, with: {args: b}"), "5:48: steps[1].with.args: must be a list of texts"),
        (step("run: x, runner: python"), "5:18: steps[1].run: is not module:function"),
        (step("run: 'a:b', runner: python, stdin: x"), "5:48: steps[1].stdin: runner python gives its function none"),
        (step("run: 'a:b', runner: python, with: {a-b: 1}"), "5:53: steps[1].with.a-b: cannot name an argument"),
        (ONE + "version: a/b\n", "3:10: version: 'a/b' is not 1 to 64 of A-Z a-z 0-9 . _ -"),
        (
            ONE + "inputs: {a: {type: text}}\n",
            "3:20: inputs.a.type: 'text' is not one of 'string', 'integer', 'number' or",
        ),
        (ONE + "inputs: {a: {type: integer, default: 3.0}}\n", "3:38: inputs.a.default: '3.0' is no integer"),
        (
            ONE + "inputs: {a.b: {}}\n",
            "3:10: inputs.a.b: 'a.b' is not 1 to 64 of A-Z a-z 0-9 _ - beginning with a letter",
        ),
        (ONE + "inputs: {a: {default: {}}}\n", "3:23: inputs.a.default: must be a text"),
        (ONE + "description: &d [*d]\n", "3:14: description[0]: contains itself"),
        (ONE + "description: !important x\n", "3:14: description: the tag !important is not known"),
        (
            ONE + "description: !!python/object/apply:os.system ['id']\n",
            "3:14: description: the tag tag:yaml.org,2002:python/object/apply:os.system is not known",
        ),
        (ONE + '"a\\nb": c\n', "3:1: 'a\\nb': unknown key; known: name, version, description, inputs, steps, outputs"),
        (ONE + "---\nname: y\n", "3:1: expected a single document in the stream, but found another document"),
    ],
)
def test_what_is_wrong_is_pointed_at(text: str, said: str) -> None:
    """The error has line, column, key, and what is wrong."""
    assert refusal(text).startswith(said)


@pytest.mark.parametrize(
    "line", ["{{ device }} and more", "*.apk", "@home", "%ls", "`date`", 'echo "a: b" && am start -n a/b: c']
)
def test_what_needs_quotes_is_told_so(line: str) -> None:
    """Most faults of syntax are values that needed quotes."""
    with pytest.raises(InvalidRequest) as refused:
        loaded(f"name: x\nsteps:\n  - id: s\n    run: {line}\n")
    assert refused.value.hint == "Put a value that begins with, or has, special characters in quotes."
    assert refused.value.message.startswith("def.yaml:4:")


@pytest.mark.parametrize("line", ['"open', "'open", '"\\ud800"', '"\\q"'])
def test_what_is_wrong_within_quotes_is_not_told_to_be_put_in_quotes(line: str) -> None:
    """An open quote is pointed at where it was opened."""
    with pytest.raises(InvalidRequest) as refused:
        loaded(f"name: x\nsteps:\n  - id: s\n    run: {line}\n")
    is_open = "open" in line
    assert refused.value.message.startswith("def.yaml:4:10:" if is_open else "def.yaml:4:")
    assert refused.value.hint == ("Close the quote." if is_open else "Use single quotes, or write the backslash twice.")


def test_braces_alone_are_no_text() -> None:
    """`{{ device }}` is a mapping to YAML."""
    said = refusal("name: x\nsteps: [{id: s, run: {{ device }}}]\n")
    assert said == "2:23: steps[0].run: a key must be a text; put braces and brackets in quotes"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("name: deep\nsteps: " + "[" * 3000 + "]" * 3000, "nested deeper than 32 levels"),
        ("\n".join("  " * level + "a:" for level in range(400)), "nested deeper than 32 levels"),
        ('{"a":' * 3000 + "1" + "}" * 3000, "nested deeper than 32 levels"),
        ("name: x\n" * 700_000, "the file is larger than 256 KiB, which is the limit"),
        ("{" + ",".join(f"k{n}" for n in range(30_000)) + "}", "more than 20,000 values, which is the limit"),
        ("[" + "*a," * 80_000 + "]", "more than 20,000 values, which is the limit"),
        (
            "x-a: &a {" + "".join(f"k{n}," for n in range(3000)) + "}\nx-b:\n" + "- {<<: *a}\n" * 3000,
            "x-b[6].<<: with all << followed there are more than 20,000 values",
        ),
        (
            f"x-a0: &a0 [x]\n{ONE}"
            + "".join(f"x-a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
            + "description: *a11\n",
            "with all aliases replaced, the definition is too large",
        ),
        (
            ONE
            + "x-a: &a '"
            + "\\"
            + "x" * 99_000
            + "'\n"
            + "outputs: {"
            + ",".join(f"a{n}: *a" for n in range(9))
            + "}",
            "too large",
        ),
        (ONE + f"inputs: {{a: {{type: integer, default: {'1' * 200_000}}}}}", "is no integer"),
        (ONE + f"outputs: {{a: '{'${{' * 40_000}'}}", "${{ is not closed by }}"),
        (ONE + "? '" + "k" * 200_000 + "'\n: x\n", "unknown key"),
        ("name: x\nsteps: [" + "{id: a, run: x}," * 3_000 + "]", "steps: has more than 500 entries"),
        (b"name: caf\xe9\n", "1:10: the file is not text in UTF-8: byte 9 is no part of any"),
        (b"name: x\nversion: \x07\n", "2:10: the character #x0007 cannot stand in YAML"),
        (bytes(range(256)) * 900, "3:115: the file is not text in UTF-8"),
    ],
    ids=[
        "brackets",
        "blocks",
        "json",
        "5 MB",
        "keys",
        "aliases",
        "merges",
        "bomb",
        "unfolded",
        "digits",
        "open",
        "key",
        "steps",
        "latin-1",
        "bell",
        "bytes",
    ],
)
def test_what_would_take_long_is_refused_at_once(content: str | bytes, said: str) -> None:
    """Size, depth and number of values are looked at first, with aliases followed and not."""
    assert said in refusal(content)

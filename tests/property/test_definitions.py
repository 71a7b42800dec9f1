"""The loader of workflow definitions, given anything."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from toolcrib.definitions.loader import parse_definition
from toolcrib.definitions.model import WorkflowDefinition
from toolcrib.scheduling.errors import InvalidRequest

FILE = Path("def.yaml")
TOKENS = st.sampled_from(
    [
        *("name: x\n", "steps:\n", "inputs:\n", "outputs:\n", "version: ", "  - id: a\n", "    run: ", "x-a: "),
        *("${{ inputs.a }}", "${{ steps.a.stdout }}", "${{", "}}", "&a ", "*a", "<<: ", "!!str ", "!x ", "|\n", ">\n"),
        *("{", "}", "[", "]", ",", ": ", "- ", "? ", "'", '"', "#", "\n", "  ", "\t", "---\n", "...\n", "%YAML 1.2\n"),
        *("a", "1", "null", "\u2028", "\x00", "\ud800", "\ufeff", "🎈", "\\", "30s", "true"),
    ]
)
KEYS = st.sampled_from(["id", "run", "runner", "env", "with", "stdin", "when", "timeout", "retry", "name", "a", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | TOKENS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
DEFINITIONS = st.fixed_dictionaries(
    {"name": st.just("x"), "steps": st.lists(st.dictionaries(KEYS, VALUES, max_size=5) | VALUES, max_size=3)},
    optional={"inputs": VALUES, "outputs": VALUES, "version": VALUES, "description": VALUES},
)


def check(content: bytes) -> None:
    """Load it: what comes is a definition that can be sent, or one line that says what is wrong."""
    fault = None
    try:
        definition = parse_definition(content, FILE)
    except InvalidRequest as error:
        fault = error
    if fault is not None:
        assert fault.message.startswith("def.yaml:")
        assert "\n" not in fault.message
        assert fault.hint
    else:
        assert WorkflowDefinition.model_validate_json(definition.model_dump_json()) == definition


@given(st.binary(max_size=200))
def test_any_bytes(content: bytes) -> None:
    """No bytes make the loader raise anything but InvalidRequest."""
    check(content)


@given(st.lists(TOKENS | st.text(max_size=5), max_size=30).map("".join))
def test_anything_that_looks_like_a_definition(text: str) -> None:
    """Neither does what is put together of what definitions consist of, in any order."""
    check(text.encode(errors="surrogatepass"))


@given(DEFINITIONS)
def test_any_value_in_any_place(data: object) -> None:
    """Neither does a value that belongs somewhere else."""
    check(_flow(data).encode(errors="surrogatepass"))


def _flow(value: object) -> str:
    """Return a value as YAML in one line, with texts as they are or in quotes."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(child)}" for key, child in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "null" if value is None else str(value)

"""What is refused at submission, before anything is created."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.rules import refusal
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.request import MAX_GOAL_BYTES, MAX_INPUTS_BYTES, MAX_INPUTS_DEPTH, TaskRequest, parse_request

HALF_A_CHARACTER = "\ud800"


def nested(depth: int, kind: type[list[Any]] | type[tuple[Any, ...]] = list) -> Any:
    """Return lists in lists in lists."""
    value: Any = 1
    for _ in range(depth):
        value = kind([value])
    return value


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "goal, workflow, work: give exactly one of them; none were given"),
        ({"goal": None}, "goal, workflow, work: give exactly one of them; none were given"),
        ({"goal": "x", "workflow": "y"}, "goal, workflow, work: give exactly one of them; 2 were given"),
        ({"goal": "x", "workflow": "y", "work": "z"}, "goal, workflow, work: give exactly one of them; 3 were given"),
        ({"work": ""}, "work: '' is not 1 to 64 of A-Z a-z 0-9 . _ : -"),
        ({"work": "two words"}, "work: 'two words' is not 1 to 64 of A-Z a-z 0-9 . _ : -"),
        ({"goal": ""}, "goal: is blank"),
        ({"goal": " \n\t"}, "goal: is blank"),
        ({"goal": "a\0b"}, "goal: has a NUL character"),
        ({"goal": HALF_A_CHARACTER}, "goal: is not valid Unicode"),
        ({"goal": 5}, "goal: input should be a valid string, got 5"),
        ({"workflow": ""}, "workflow: '' is not NAME or NAME@VERSION"),
        ({"workflow": "a b"}, "workflow: 'a b' is not NAME or NAME@VERSION"),
        ({"workflow": "a@"}, "workflow: 'a@' is not NAME or NAME@VERSION"),
        ({"workflow": "a@1@2"}, "workflow: 'a@1@2' is not NAME or NAME@VERSION"),
        ({"workflow": "a\n"}, "workflow: 'a\\n' is not NAME or NAME@VERSION"),
    ],
)
def test_k24_there_is_one_kind_of_work_and_it_is_some_text(fields: dict[str, Any], message: str) -> None:
    """Neither, both, blank or malformed work is refused with the name of the field."""
    assert refusal(**fields) == message


@pytest.mark.parametrize(
    ("size", "unit"), [(MAX_GOAL_BYTES + 1, "x"), (MAX_GOAL_BYTES // 2 + 1, "é"), (3_000_000, "x"), (5_000_000, "x")]
)
def test_c01_a_goal_has_a_limit_in_bytes(size: int, unit: str) -> None:
    """The limit counts bytes, not characters, and is in the message; just at the limit a goal passes."""
    length = size * len(unit.encode())
    assert refusal(goal=unit * size) == f"goal: is {length:,} bytes long, the limit is 131,072"
    assert parse_request({"goal": "x" * MAX_GOAL_BYTES}).goal == "x" * MAX_GOAL_BYTES


def test_c01_a_long_prompt_is_refused_with_its_size() -> None:
    """A real one: 160 KB that no command line takes."""
    assert refusal(goal="Read the log and report. " * 6500) == "goal: is 162,500 bytes long, the limit is 131,072"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"a": "x" * MAX_INPUTS_BYTES}, "inputs: is 262,153 bytes long, the limit is 262,144"),
        ({"a": "é" * 131_072}, "inputs: is 262,153 bytes long, the limit is 262,144"),
        ({"a": float("nan")}, "inputs: is not JSON: "),
        ({"a": float("-inf")}, "inputs: is not JSON: "),
        ({"a": {1, 2}}, "inputs: is not JSON: "),
        ({"a": {1: 2}}, "inputs: is not JSON: key 1 is not a text"),
        ({"a": b"x"}, "inputs: is not JSON: "),
        ({"a": 10**5000}, "inputs: is not JSON: "),
        ({"a": HALF_A_CHARACTER}, "inputs: is not valid Unicode"),
        ({HALF_A_CHARACTER: 1}, "inputs: is not valid Unicode"),
        ({1: 2}, "inputs[1].[key]: input should be a valid string, got 1"),
        ([], "inputs: input should be a valid dictionary, got []"),
        ("{}", "inputs: input should be a valid dictionary, got '{}'"),
        (None, "inputs: input should be a valid dictionary, got None"),
    ],
)
def test_inputs_are_json_that_can_be_sent(inputs: Any, message: str) -> None:
    """What does not come out of JSON as it went in, or is too large, is refused."""
    assert refusal(goal="x", inputs=inputs).startswith(message)


@pytest.mark.parametrize(
    "fields",
    [
        {"goal": nested(3000)},
        {"goal": "x", "inputs": nested(3000)},
        {"goal": "x", "inputs": {"a": nested(3000)}},
        {"goal": "x", "inputs": {"a": nested(3000, tuple)}},
        {"goal": "x", "inputs": {"a": nested(MAX_INPUTS_DEPTH)}},
        {"goal": "x", "tags": [nested(3000)]},
        {"goal": "x", "tags": nested(3000)},
        {"goal": "x", "priority": nested(3000)},
        {"goal": "x", "timeout": {"a": nested(3000)}},
        {"goal": "x", "nonsense": nested(3000)},
    ],
)
def test_d13_deep_nesting_is_an_ordinary_error(fields: dict[str, Any]) -> None:
    """Three thousand levels are refused wherever they stand, without a RecursionError."""
    message = refusal(**fields)
    assert message.startswith(("goal: ", "inputs: ", "tags: ", "priority: ", "timeout: ", "nonsense: "))
    if "inputs" in fields and isinstance(fields["inputs"], dict):
        assert message == "inputs: is nested deeper than 64 levels"


def test_inputs_may_be_nested_up_to_the_limit() -> None:
    """Just at the limit they pass."""
    inputs = {"a": nested(MAX_INPUTS_DEPTH - 2)}
    assert parse_request({"goal": "x", "inputs": inputs}).inputs == inputs


def test_inputs_that_contain_themselves_are_refused() -> None:
    """A circle is nested without end, and is refused as such."""
    circle: dict[str, Any] = {}
    circle["a"] = circle
    assert refusal(goal="x", inputs=circle) == "inputs: is nested deeper than 64 levels"


@pytest.mark.parametrize("field", ["capabilities", "udids"])
def test_b15_an_unknown_field_is_refused_with_the_known_ones(field: str) -> None:
    """A wish that nobody understands is never ignored: the task would run on the wrong device."""
    message = refusal(goal="x", driver_type="browser", **{field: {"se:networkname": "dev_v4"}})
    assert message == f"{field}: unknown field; known fields: {', '.join(TaskRequest.model_fields)}"


@pytest.mark.parametrize(
    ("field", "meant"), [("prioritty", "priority"), ("tag", "tags"), ("goals", "goal"), ("driverType", "driver_type")]
)
def test_a_misspelt_field_gets_the_right_spelling(field: str, meant: str) -> None:
    """The nearest known field is named."""
    assert refusal(goal="x", **{field: 1}) == f"{field}: unknown field; did you mean {meant}?"


@pytest.mark.parametrize("field", ["y" * 3_000_000, "a\nb", HALF_A_CHARACTER, ""])
def test_a_field_of_any_name_is_refused_in_a_message_that_can_be_sent(field: str) -> None:
    """However odd the name of an unknown field is, what is said about it is short and printable."""
    assert refusal(goal="x", **{field: 1}).isprintable()


@pytest.mark.parametrize("data", [None, [], "goal", 5, [{"goal": "x"}], True])
def test_a_request_is_an_object(data: Any) -> None:
    """A task that is started by hand with something else is told what is expected."""
    with pytest.raises(InvalidRequest, match=r'not a JSON object such as \{"goal": "echo hello"\}$'):
        parse_request(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters(exclude_categories=())),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text(max_size=4), values, max_size=4),
    max_leaves=12,
)


OBJECTS = st.dictionaries(st.sampled_from([*TaskRequest.model_fields, "other"]), JSON, max_size=5)
LIKELY = st.fixed_dictionaries({"goal": st.text(min_size=1), "inputs": st.dictionaries(st.text(), JSON)})


@given(OBJECTS | LIKELY)
def test_any_object_is_a_request_or_refused(data: dict[str, Any]) -> None:
    """Nothing raises anything but `InvalidRequest`, and what passes survives being sent, with the same digest."""
    try:
        request = parse_request(data)
    except InvalidRequest as refused:
        refused.message.encode()
        return
    sent = json.loads(json.dumps(request.model_dump(exclude_defaults=True)))
    assert parse_request(sent) == request
    assert parse_request(sent).digest == request.digest


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        ({"goal": "echo hello"}, "echo hello"),
        ({"goal": "echo\n  hello\n"}, "echo hello"),
        ({"goal": "x" * 61}, "x" * 59 + "…"),
        ({"goal": "x" * 60}, "x" * 60),
        ({"goal": "echo", "name": " greet "}, "greet"),
        ({"workflow": "smoke@2"}, "smoke@2"),
        ({"workflow": "smoke", "name": "nightly"}, "nightly"),
    ],
)
def test_k23_a_task_has_a_title(fields: dict[str, Any], title: str) -> None:
    """Its name as given, else its workflow, else its goal shortened to one line."""
    assert parse_request(fields).title == title


def test_the_digest_tells_contents_apart() -> None:
    """Equal requests have equal digests, whatever was written out; any difference shows."""
    plain = parse_request({"goal": "x"})
    assert plain.digest == parse_request({"goal": "x", "priority": 3, "tags": []}).digest
    others = {"priority": 2, "tags": ["a"], "inputs": {"a": 1}, "timeout": 5, "pool": "other"}
    digests = [plain.digest, *(parse_request({"goal": "x", name: value}).digest for name, value in others.items())]
    assert len(dict.fromkeys(digests)) == len(digests)


def test_a_work_is_asked_for_by_a_tag() -> None:
    """Beside the tags that were given, of which there may be as many as ever; and the task is named by it."""
    request = parse_request({"work": "resize", "tags": ["zoom", "gpu"]})
    assert (request.title, request.tags) == ("resize", ("gpu", "zoom"))
    assert request.constraints.tags == ("gpu", "work:resize", "zoom")
    assert len(parse_request({"work": "resize", "tags": [f"t{n}" for n in range(64)]}).constraints.tags) == 65

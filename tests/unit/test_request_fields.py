"""Tags, numbers and names, in requests and elsewhere: what is refused, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from support.rules import refusal
from toolcrib.scheduling.config import MAX_QUEUE_DEPTH, PoolConfig
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.names import checked_key, checked_name
from toolcrib.scheduling.request import parse_request

HALF_A_CHARACTER = "\ud800"
NOT_NUMBERS: tuple[Any, ...] = (float("nan"), float("inf"), "30", True, [30])


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ("pixel, android-14", "tags: must be a list of texts"),
        ({"a": 1}, "tags: must be a list of texts"),
        (14, "tags: must be a list of texts"),
        ([14], "tags: 14 is not a text; put it in quotes"),
        ([3.10], "tags: 3.1 is not a text; put it in quotes"),
        (["a", False], "tags: False is not a text; put it in quotes"),
        ([None], "tags: None is not a text; put it in quotes"),
        ([""], "tags: a tag is blank"),
        (["  "], "tags: a tag is blank"),
        (["x" * 129], "tags: a tag has 129 characters, the limit is 128"),
        ([f"t{n}" for n in range(65)], "tags: 65 tags, the limit is 64"),
        (["a\0"], "tags: tag 'a\\x00' has characters that cannot be printed"),
        (["a\nb"], "tags: tag 'a\\nb' has characters that cannot be printed"),
        ([HALF_A_CHARACTER], "tags: tag '\\ud800' has characters that cannot be printed"),
    ],
)
def test_b03_b05_tags_are_a_list_of_texts(tags: Any, message: str) -> None:
    """A text is not taken for a list, nor a number for a text, for `3.10` would become the tag `3.1`."""
    assert refusal(goal="x", tags=tags) == message


def test_b09_tags_are_trimmed_and_without_repeats() -> None:
    """The same tag twice is one, and blanks around it do not count; a comma inside does not split it."""
    tags = parse_request({"goal": "x", "tags": [" pixel", "pixel ", "a, b", "pixel"]}).tags
    assert tags == ("a, b", "pixel")


@pytest.mark.parametrize("field", ["timeout", "queue_timeout"])
@pytest.mark.parametrize("value", [*NOT_NUMBERS, 0, -1, -0.5, 30 * 86_400 + 1])
def test_timeouts_are_positive_finite_and_at_most_30_days(field: str, value: Any) -> None:
    """Zero, negative, endless and unspeakable times are refused with the field's name."""
    assert refusal(goal="x", **{field: value}).startswith(f"{field}: input should be ")


@pytest.mark.parametrize(
    ("field", "low", "high"), [("priority", 1, 5), ("max_attempts", 1, 100)], ids=["priority", "max_attempts"]
)
def test_whole_numbers_are_within_their_limits(field: str, low: int, high: int) -> None:
    """One below and one above is refused, with the limit; so is what is no whole number."""
    assert str(low) in refusal(goal="x", **{field: low - 1})
    assert str(high) in refusal(goal="x", **{field: high + 1})
    for value in (*NOT_NUMBERS, 2.5, 3.0, 10**5000):
        assert refusal(goal="x", **{field: value}).startswith(f"{field}: input should be ")
    for value in (low, high):
        assert getattr(parse_request({"goal": "x", field: value}), field) == value


@pytest.mark.parametrize("field", ["pool", "driver_type", "device_id", "host_id"])
@pytest.mark.parametrize("value", ["", " ", "a b", "x" * 65, "é", "a/b", "a\n", HALF_A_CHARACTER, "x" * 3_000_000])
def test_names_are_of_plain_characters(field: str, value: str) -> None:
    """Names that would not fit into ids are refused, and a long one is not quoted in full."""
    message = refusal(goal="x", **{field: value})
    assert message.startswith(f"{field}: ")


@pytest.mark.parametrize("field", ["name", "group_id", "group_name"])
@pytest.mark.parametrize("value", ["", "  ", "a\nb", "x" * 201, "a\0", HALF_A_CHARACTER])
def test_titles_are_one_printable_line(field: str, value: str) -> None:
    """What would not show as one line in a list is refused."""
    assert refusal(goal="x", **{field: value}).startswith(f"{field}: ")


def test_a_groups_name_needs_a_group() -> None:
    """A name for no group is a mistake."""
    assert refusal(goal="x", group_name="nightly") == "group_name: needs a group_id"


@pytest.mark.parametrize("key", ["", "a b", "x" * 201, "a:b", "é", "a\n", "x" * 3_000_000])
def test_keys_are_of_plain_characters(key: str) -> None:
    """A key becomes part of a workflow id; other characters are refused, and a long one is not quoted in full."""
    with pytest.raises(InvalidRequest, match=r"^key: .{2,60} is not 1 to 200 of A-Z a-z 0-9 \. _ -$"):
        checked_key(key)
    assert checked_key("x" * 200) == "x" * 200
    assert checked_name("Lab-1:a_b.c", "host") == "Lab-1:a_b.c"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_concurrent": 0}, "max_concurrent: input should be greater than or equal to 1, got 0"),
        ({"max_concurrent": True}, "max_concurrent: input should be a valid integer, got True"),
        ({"max_concurrent": "3"}, "max_concurrent: input should be a valid integer, got '3'"),
        ({"max_queue_depth": MAX_QUEUE_DEPTH + 1}, "max_queue_depth: input should be less than or equal to 20000"),
        ({"lease_ttl": 2.9}, "lease_ttl: input should be greater than or equal to 3"),
        ({"lease_ttl": float("nan")}, "lease_ttl: input should be "),
        ({"claim_timeout": float("inf")}, "claim_timeout: input should be "),
        ({"max_attempts": 0}, "max_attempts: input should be greater than or equal to 1, got 0"),
        ({"strategy": ""}, "strategy: "),
        ({"strategy": "x" * 65}, "strategy: "),
        ({"stratgey": "fifo_match"}, "stratgey: unknown field; did you mean strategy?"),
    ],
)
def test_settings_of_a_pool_are_checked_too(changes: dict[str, object], message: str) -> None:
    """A change outside the limits is refused with its field, and the old settings stand."""
    config = PoolConfig()
    with pytest.raises(InvalidRequest) as caught:
        config.changed(changes)
    assert caught.value.message.startswith(message)
    assert config == PoolConfig()


def test_k34_defaults() -> None:
    """The defaults are those that were promised."""
    config, request = PoolConfig(), parse_request({"goal": "x"})
    assert config.strategy == "fifo_match"
    assert (config.max_concurrent, config.max_queue_depth, config.max_attempts) == (3, 1_000, 3)
    assert (config.claim_timeout, config.lease_ttl) == (30.0, 15.0)
    assert (request.timeout, request.queue_timeout, request.priority, request.pool) == (86_400.0, None, 3, "default")

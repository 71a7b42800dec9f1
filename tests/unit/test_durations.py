"""How durations are written."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.scheduling.durations import parse_duration
from toolcrib.scheduling.errors import InvalidRequest


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("1h30m", 5400),
        ("2d", 172_800),
        ("1d2h3m4s", 93_784),
        ("1.5h", 5400),
        ("0.25s", 0.25),
        ("PT5M", 300),
        ("PT1H30M", 5400),
        ("P1DT2H", 93_600),
        ("P2D", 172_800),
        ("PT0.5S", 0.5),
        ("90", 90),
        ("1.5", 1.5),
        ("0", 0),
        (" 5m ", 300),
    ],
)
def test_it_reads_every_documented_form(text: str, seconds: float) -> None:
    """Units, ISO 8601 and plain seconds all come out as seconds."""
    assert parse_duration(text, "ttl") == seconds


NONSENSE = (
    *("", " ", "-5", "-5m", "+5", "5:00", "inf", "nan", "1e3", "0x10", "five", "1,5h", "٣s", "5m\n5"),
    *("5 m", "m", "5x", "30m1h", "5m5m", "P", "PT", "P5M", "PT5", "P1DT"),
)


@pytest.mark.parametrize("text", NONSENSE)
def test_it_refuses_everything_else_by_name(text: str) -> None:
    """Nonsense is never a number; the error names the field and shows the forms that are understood."""
    with pytest.raises(InvalidRequest, match=r"^ttl: .* is not a duration such as 30s, 5m, 1h30m, PT5M"):
        parse_duration(text, "ttl")


@pytest.mark.parametrize("text", ["9" * 400, "9" * 400 + "d"])
def test_it_refuses_what_no_number_can_hold(text: str) -> None:
    """An endless number is not taken for infinity, nor quoted in full."""
    with pytest.raises(InvalidRequest, match=r"^ttl: '9{20}'\.\.\. is too long a duration$"):
        parse_duration(text, "ttl")


@given(st.integers(0, 99), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_both_notations_agree(days: int, hours: int, minutes: int, seconds: int) -> None:
    """`1d2h3m4s` and `P1DT2H3M4S` are the same time."""
    units = parse_duration(f"{days}d{hours}h{minutes}m{seconds}s", "x")
    assert units == parse_duration(f"P{days}DT{hours}H{minutes}M{seconds}S", "x")
    assert units == days * 86_400 + hours * 3_600 + minutes * 60 + seconds


@given(st.text(max_size=12))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    """No text raises anything but `InvalidRequest`, and no duration is negative."""
    with suppress(InvalidRequest):
        assert parse_duration(text, "x") >= 0

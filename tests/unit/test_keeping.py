"""What of attempts is kept, and what goes: too old, or too much."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from toolcrib.scheduling.keeping import Keep, KeptAttempt, outlived


def kept(name: str, ended_at: float, size: int = 1, *, is_open: bool = False) -> KeptAttempt:
    """Return what an attempt has left."""
    return KeptAttempt(name=name, ended_at=ended_at, bytes=size, open=is_open)


def test_what_is_too_old_goes() -> None:
    """After 30 days unless somebody says otherwise."""
    day = 86_400
    attempts = [kept("a", 0), kept("b", day), kept("c", 2 * day)]
    assert outlived(attempts, Keep(), 30 * day) == []
    assert outlived(attempts, Keep(), 31 * day) == ["a"]
    assert outlived(attempts, Keep(age=day), 4 * day) == ["a", "b", "c"]


def test_of_too_much_the_oldest_goes() -> None:
    """As many as it takes, and one of the same age by its name."""
    attempts = [kept("new", 3, 4), kept("b", 1, 4), kept("a", 1, 4)]
    assert outlived(attempts, Keep(bytes=12), 5) == []
    assert outlived(attempts, Keep(bytes=11), 5) == ["a"]
    assert outlived(attempts, Keep(bytes=4), 5) == ["a", "b"]
    assert outlived(attempts, Keep(bytes=0), 5) == ["a", "b", "new"]


def test_an_open_lease_keeps_what_it_has() -> None:
    """It counts, and it stays, however old and large it is."""
    attempts = [kept("open", 0, 100, is_open=True), kept("a", 1, 1), kept("b", 2, 1)]
    assert outlived(attempts, Keep(bytes=101), 5) == ["a"]
    assert outlived(attempts, Keep(bytes=10, age=1), 1e9) == ["a", "b"]


ATTEMPTS = st.lists(
    st.builds(
        KeptAttempt,
        name=st.uuids().map(str),
        ended_at=st.floats(0, 100),
        bytes=st.integers(0, 20),
        open=st.booleans(),
    ),
    max_size=20,
)


@given(ATTEMPTS, st.floats(0, 100), st.integers(0, 100), st.floats(0, 150), st.randoms(use_true_random=False))
def test_bounds_hold_and_no_more_goes_than_has_to(
    attempts: list[KeptAttempt], age: float, size: int, now: float, random: Random
) -> None:
    """Nothing open goes; what stays is within the bounds, unless it is open; what goes is older than what stays."""
    keep = Keep(age=age, bytes=size)
    gone = outlived(attempts, keep, now)
    by_name = {attempt.name: attempt for attempt in attempts}
    ended = [attempt for attempt in attempts if not attempt.open]
    stays = [attempt for attempt in ended if attempt.name not in gone]

    assert len(set(gone)) == len(gone)
    assert not any(by_name[name].open for name in gone)
    assert all(now - attempt.ended_at <= age for attempt in stays)
    total = sum(attempt.bytes for attempt in attempts if attempt.name not in gone)
    assert total <= size or not stays
    assert max((by_name[name].ended_at for name in gone), default=-1) <= min((a.ended_at for a in stays), default=1e9)
    if gone:
        last = by_name[gone[-1]]
        assert now - last.ended_at > age or total + last.bytes > size
    shuffled = list(attempts)
    random.shuffle(shuffled)
    assert outlived(shuffled, keep, now) == gone

"""Assignment strategies by name, and what the shipped ones do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.rules import START, device, entry, holders, pool, register, waiting
from toolcrib.scheduling.errors import InvalidRequest, UnknownStrategy
from toolcrib.scheduling.strategies import (
    STRATEGIES,
    AssignmentStrategy,
    FifoMatch,
    PriorityFifo,
    StrategyRegistry,
    assignment_strategy,
    checked_rank,
)


class RankOnly:
    """Half a strategy."""

    def rank(self) -> tuple[float, ...]:
        """Order by nothing."""
        return ()


@pytest.fixture
def registry() -> StrategyRegistry:
    """A registry of this test's own."""
    registry = StrategyRegistry()
    registry.register("fifo_match", FifoMatch())
    return registry


@pytest.fixture
def spare_name() -> Iterator[str]:
    """A name in the registry of all pools that is free again after the test."""
    yield "spare"
    STRATEGIES._strategies.pop("spare", None)


def test_a_registered_strategy_is_found_by_its_name(registry: StrategyRegistry) -> None:
    """Names are listed in a fixed order."""
    registry.register("another", PriorityFifo())
    assert isinstance(registry.get("another"), PriorityFifo)
    assert registry.names() == ["another", "fifo_match"]
    assert "another" in registry
    assert "fifo" not in registry


def test_a_name_is_taken_once(registry: StrategyRegistry) -> None:
    """A second strategy under a name is refused, and the first stays: a name never changes its meaning."""
    first = registry.get("fifo_match")
    with pytest.raises(InvalidRequest, match=r"^strategy: 'fifo_match' is registered already$"):
        registry.register("fifo_match", PriorityFifo())
    assert registry.get("fifo_match") is first


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "fifo\n"])
def test_a_name_is_of_plain_characters(registry: StrategyRegistry, name: str) -> None:
    """Else it could not be configured."""
    with pytest.raises(InvalidRequest, match=r"^strategy: "):
        registry.register(name, FifoMatch())


@pytest.mark.parametrize("thing", [RankOnly(), object(), None, "fifo_match"])
def test_what_is_no_strategy_is_refused(registry: StrategyRegistry, thing: AssignmentStrategy) -> None:
    """Both methods have to be there; the error names what is missing."""
    with pytest.raises(InvalidRequest, match=r"^strategy: 'odd' has no rank\(\) and choose\(\)$"):
        registry.register("odd", thing)
    assert "odd" not in registry


def test_an_unknown_name_is_refused_with_the_known_ones(registry: StrategyRegistry) -> None:
    """The error lists what there is, and says how to get another."""
    registry.register("b", FifoMatch())
    with pytest.raises(UnknownStrategy) as caught:
        registry.get("bogus")
    assert caught.value.message == "no assignment strategy 'bogus' is registered; known: b, fifo_match"
    assert "--plugin" in (caught.value.hint or "")


def test_k28_a_pool_does_not_take_an_unknown_strategy() -> None:
    """A refused change leaves everything as it was."""
    scheduler = pool(device("d"))
    before = scheduler.config
    with pytest.raises(UnknownStrategy):
        scheduler.configure(before.changed({"strategy": "bogus", "max_queue_depth": 5}), START)
    assert scheduler.config == before


def test_a_class_is_registered_by_a_decorator(spare_name: str) -> None:
    """Third parties need no more than this; the class stays what it was."""

    @assignment_strategy(spare_name)
    class Spare(FifoMatch):
        """A strategy."""

    assert isinstance(STRATEGIES.get(spare_name), Spare)
    with pytest.raises(InvalidRequest, match="registered already"):
        assignment_strategy(spare_name)(FifoMatch)


def test_the_shipped_strategies_are_there() -> None:
    """Pools may count on these names."""
    assert {"fifo_match", "priority_fifo"} <= set(STRATEGIES.names())
    assert pool().config.strategy == "fifo_match"


@pytest.mark.parametrize("rank", [(), (1, 2.5), [3.0], (float("inf"),), (True, 10**30)])
def test_a_rank_is_some_numbers(rank: object) -> None:
    """Whole or not, few or many; they only have to be comparable."""
    assert checked_rank(rank) == tuple(rank)  # type: ignore[arg-type]


@pytest.mark.parametrize("rank", [None, 1, "12", (1, "2"), (None,), (float("nan"),), {1}, (1, (2,)), object()])
def test_what_cannot_be_compared_is_no_rank(rank: object) -> None:
    """It is refused at once, since sorting it would go wrong later."""
    with pytest.raises(ValueError, match=r"^rank\(\) returned .* which is not a tuple of numbers$"):
        checked_rank(rank)


def test_fifo_match_looks_at_submission_alone() -> None:
    """Priority does not matter; of two that came at the same time, the one that was admitted first goes first."""
    rank = FifoMatch().rank
    assert rank(waiting("a", 0, priority=5)) < rank(waiting("b", 1, priority=1))
    assert rank(waiting("a", 9, submitted_at=START - 1)) < rank(waiting("b", 1))


def test_priority_fifo_looks_at_priority_first() -> None:
    """1 goes before 5, and within a priority it is first come, first served."""
    rank = PriorityFifo().rank
    assert rank(waiting("a", 9, priority=1, submitted_at=START + 9)) < rank(waiting("b", 0, priority=2))
    assert rank(waiting("a", 0, priority=2)) < rank(waiting("b", 1, priority=2))


def test_k04_a_head_that_fits_nothing_blocks_nobody() -> None:
    """The oldest task that fits gets the device, not the oldest task."""
    scheduler = pool(device("d", "a"))
    scheduler.admit([entry("busy", "a")], START)
    scheduler.admit([entry("blocked", "b"), entry("next", "a"), entry("last", "a")], START + 1)
    assert holders(scheduler) == {"busy": "d"}
    register(scheduler, "h2", [device("e", "a")], START + 2)
    assert holders(scheduler) == {"busy": "d", "next": "e"}


@pytest.mark.parametrize(("strategy", "first"), [("fifo_match", "old"), ("priority_fifo", "urgent")])
def test_k25_a_newcomer_overtakes_by_priority_alone(strategy: str, first: str) -> None:
    """And only where the strategy looks at it; a change of strategy sorts who waits already."""
    scheduler = pool(strategy="fifo_match")
    scheduler.admit([entry("old", priority=5)], START)
    scheduler.admit([entry("urgent", priority=1), entry("later", priority=1)], START + 1)
    scheduler.configure(scheduler.config.changed({"strategy": strategy}), START + 2)
    register(scheduler, "h", [device("d")], START + 3)
    assert list(holders(scheduler)) == [first]

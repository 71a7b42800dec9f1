"""A strategy of a third party that is at fault: it grants nothing, shows why, and harms neither pool nor tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from support.rules import START, device, entry, holders, pool, pooled, register, settlement
from toolcrib.scheduling.device import PooledDevice
from toolcrib.scheduling.messages import SettleKind, Settlement
from toolcrib.scheduling.pool import dump_state, load_state
from toolcrib.scheduling.pool_view import pool_details, pool_view
from toolcrib.scheduling.ranking import MAX_PROBLEM_LENGTH
from toolcrib.scheduling.scheduler import TaskScheduler
from toolcrib.scheduling.strategies import FifoMatch, Rank, StrategyRegistry
from toolcrib.scheduling.waiting import Waiting


class Scripted(FifoMatch):
    """As `fifo_match`, unless it is told to rank or choose in another way."""

    def __init__(self) -> None:
        self.how_to_rank: Callable[[Waiting], Any] | None = None
        self.how_to_choose: Callable[[Waiting, Sequence[PooledDevice]], Any] | None = None

    def rank(self, task: Waiting) -> Rank:
        """Order as told."""
        ranked: Rank = self.how_to_rank(task) if self.how_to_rank else super().rank(task)
        return ranked

    def choose(self, task: Waiting, devices: Sequence[PooledDevice]) -> PooledDevice | None:
        """Take the one that it is told to take."""
        chosen: PooledDevice | None = self.how_to_choose(task, devices) if self.how_to_choose else devices[0]
        return chosen


@pytest.fixture
def strategy() -> Scripted:
    """The strategy of the pool under test."""
    return Scripted()


@pytest.fixture
def registry(strategy: Scripted) -> StrategyRegistry:
    """Knows that strategy, and one that works."""
    registry = StrategyRegistry()
    registry.register("scripted", strategy)
    registry.register("fifo_match", FifoMatch())
    return registry


@pytest.fixture
def scheduler(registry: StrategyRegistry) -> TaskScheduler:
    """A pool with two devices of different kinds."""
    return pool(device("d1", "a"), device("d2", "b"), registry=registry, strategy="scripted")


def fail(*_: Any) -> Any:
    """Do what a mistake in a strategy does."""
    raise KeyError("no such thing")


def is_stuck(scheduler: TaskScheduler, problem: str, queued: list[str]) -> None:
    """Check that nothing is granted or lost, and that everyone can see why."""
    assert not scheduler.assign(START + 1)
    assert not scheduler.held
    assert [task.task_id for task in scheduler.queue.in_order()] == queued
    assert scheduler.problem is not None
    assert scheduler.problem.startswith(f"strategy 'scripted': {problem}")
    assert pool_view(scheduler).problem == scheduler.problem
    assert scheduler.problem in pool_details(scheduler)


@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        (fail, "KeyError: 'no such thing'"),
        (lambda *_: pooled("elsewhere"), "ValueError: it chose "),
        (lambda *_: pooled("d1", "a"), "ValueError: it chose "),
        (lambda *_: "h/d1", "ValueError: it chose 'h/d1' for t1, which was not offered"),
        (lambda task, devices: devices, "ValueError: it chose ("),
        (lambda task, devices: devices[7], "IndexError: "),
        (lambda task, devices: devices.clear(), "AttributeError: "),
    ],
)
def test_a_choice_that_fails_or_was_not_offered_grants_nothing(
    scheduler: TaskScheduler, strategy: Scripted, choice: Callable[..., Any], problem: str
) -> None:
    """Whatever it raises or returns: the admission is answered, the task waits, and the problem shows."""
    strategy.how_to_choose = choice
    assert scheduler.admit([entry("t1", "a")], START)[0].refused is None
    is_stuck(scheduler, problem, ["t1"])


def test_a_device_that_is_idle_but_does_not_fit_is_not_granted(scheduler: TaskScheduler, strategy: Scripted) -> None:
    """A strategy picks among the devices that fit; any other of the pool's is as good as a stranger's."""
    strategy.how_to_choose = lambda *_: scheduler.devices[1]
    scheduler.admit([entry("t1", "a")], START)
    is_stuck(scheduler, "ValueError: it chose ", ["t1"])


@pytest.mark.parametrize(
    ("rank", "problem"),
    [
        (fail, "KeyError: 'no such thing'"),
        (lambda _: None, "ValueError: rank() returned None"),
        (lambda _: 5, "ValueError: rank() returned 5"),
        (lambda task: (task.task_id,), "ValueError: rank() returned ('t"),
        (lambda _: (float("nan"),), "ValueError: rank() returned (nan,)"),
    ],
)
def test_without_ranks_there_is_no_order_and_nothing_is_granted(
    scheduler: TaskScheduler, strategy: Scripted, rank: Callable[[Waiting], Any], problem: str
) -> None:
    """No other order is put in its place; tasks wait by their time of submission, and can go."""
    strategy.how_to_rank = rank
    scheduler.admit([entry("t1"), entry("t2")], START)
    is_stuck(scheduler, problem, ["t1", "t2"])
    scheduler.settle([Settlement(kind=SettleKind.WITHDRAW, task_id="t1")], START)
    is_stuck(scheduler, problem, ["t2"])


def test_one_task_that_cannot_be_ranked_stops_the_pool_only_while_it_waits(
    scheduler: TaskScheduler, strategy: Scripted
) -> None:
    """Its place might have been the first; when it has gone, the others get their devices and the problem is over."""
    strategy.how_to_rank = lambda task: fail() if task.task_id == "odd" else (task.submitted_at,)
    scheduler.configure(scheduler.config.changed({"max_concurrent": 1}), START)
    scheduler.admit([entry("t1"), entry("odd"), entry("t2")], START)
    scheduler.settle([settlement(SettleKind.RELEASE, scheduler.held[0])], START)
    is_stuck(scheduler, "KeyError", ["odd", "t2"])
    scheduler.settle([Settlement(kind=SettleKind.WITHDRAW, task_id="odd")], START)
    assert list(holders(scheduler)) == ["t2"]
    assert scheduler.problem is None


def test_a_problem_is_still_there_after_a_restart(
    scheduler: TaskScheduler, strategy: Scripted, registry: StrategyRegistry
) -> None:
    """The state that is carried over holds the tasks, and the strategy is asked again about each."""
    strategy.how_to_rank = fail
    scheduler.admit([entry("t1"), entry("t2")], START)
    scheduler = TaskScheduler(load_state(dump_state(scheduler.state)), registry)
    is_stuck(scheduler, "KeyError", ["t1", "t2"])
    strategy.how_to_rank = None
    scheduler = TaskScheduler(load_state(dump_state(scheduler.state)), registry)
    assert [lease.task_id for lease in scheduler.assign(START)] == ["t1", "t2"]
    assert scheduler.problem is None


def test_s1_25_a_strategy_that_is_gone_is_not_replaced(scheduler: TaskScheduler) -> None:
    """A process that does not know the pool's strategy grants nothing in its name."""
    register(scheduler, "h", [], START)
    scheduler.admit([entry("t1")], START)
    state = load_state(dump_state(scheduler.state))
    scheduler = TaskScheduler(state, StrategyRegistry())
    register(scheduler, "h", [device("d")], START)
    is_stuck(scheduler, "UnknownStrategy: no assignment strategy 'scripted' is registered", ["t1"])


def test_another_strategy_ends_the_problem(scheduler: TaskScheduler, strategy: Scripted) -> None:
    """Who configures a strategy that works needs to do nothing else: waiting tasks get their devices at once."""
    strategy.how_to_rank = strategy.how_to_choose = fail
    scheduler.admit([entry("t1"), entry("t2")], START)
    scheduler.configure(scheduler.config.changed({"strategy": "fifo_match"}), START + 1)
    assert holders(scheduler) == {"t1": "d1", "t2": "d2"}
    assert scheduler.problem is None


def test_what_was_granted_before_a_fault_stays_granted(scheduler: TaskScheduler, strategy: Scripted) -> None:
    """Each grant is recorded whole; one that fails later in the same decision undoes none."""
    strategy.how_to_choose = lambda task, devices: fail() if task.task_id == "t2" else devices[0]
    register(scheduler, "h", [], START)
    scheduler.admit([entry("t1"), entry("t2"), entry("t3")], START)
    register(scheduler, "h", [device("d1"), device("d2"), device("d3")], START)
    assert holders(scheduler) == {"t1": "d1"}
    assert [lease.task_id for lease in scheduler.undelivered] == ["t1"]
    assert scheduler.problem is not None


def test_a_problem_is_told_in_few_words(scheduler: TaskScheduler, strategy: Scripted) -> None:
    """An error text of megabytes does not get into the pool's state."""

    def shout(*_: Any) -> Any:
        raise ValueError("x" * 3_000_000)

    strategy.how_to_choose = shout
    scheduler.admit([entry("t1", "a")], START)
    assert scheduler.problem is not None
    assert len(scheduler.problem) == MAX_PROBLEM_LENGTH


def test_a_strategy_may_let_a_task_wait(scheduler: TaskScheduler, strategy: Scripted) -> None:
    """None is no fault: the task keeps its place, and those behind it get their turn, whatever they ask for."""
    strategy.how_to_choose = lambda task, devices: None if task.priority == 5 else devices[0]
    register(scheduler, "h", [], START)
    waits = [entry("w1", priority=5), entry("w2", priority=5), entry("w3", "a", priority=5)]
    scheduler.admit([*waits, entry("t1"), entry("t2", "a"), entry("t3"), entry("t4")], START)
    register(scheduler, "h", [device("d1", "a"), device("d2"), device("d3", "a")], START)
    assert holders(scheduler) == {"t1": "d1", "t2": "d3", "t3": "d2"}
    assert [task.task_id for task in scheduler.queue.in_order()] == ["w1", "w2", "w3", "t4"]
    assert scheduler.problem is None

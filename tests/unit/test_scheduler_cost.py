"""What one decision costs, counted in looks at tasks and devices, since time depends on the machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from support.rules import START, device, entry, pool, settlement
from toolcrib.scheduling.constraints import Constraints, Describable
from toolcrib.scheduling.device import PooledDevice
from toolcrib.scheduling.messages import SettleKind
from toolcrib.scheduling.scheduler import TaskScheduler
from toolcrib.scheduling.strategies import FifoMatch, Rank, StrategyRegistry
from toolcrib.scheduling.waiting import Waiting

TAGS = [f"tag{n}" for n in range(10)]


class CountingFifo(FifoMatch):
    """Counts how often it is asked."""

    def __init__(self, calls: Counter[str]) -> None:
        self._calls = calls

    def rank(self, task: Waiting) -> Rank:
        """Order by submission."""
        self._calls["rank"] += 1
        return super().rank(task)

    def choose(self, task: Waiting, devices: Sequence[PooledDevice]) -> PooledDevice | None:
        """Take the one registered first."""
        self._calls["choose"] += 1
        return super().choose(task, devices)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often constraints and strategies were asked."""
    counted: Counter[str] = Counter()
    matches = Constraints.matches

    def counting(self: Constraints, device: Describable) -> bool:
        counted["matches"] += 1
        return matches(self, device)

    monkeypatch.setattr(Constraints, "matches", counting)
    return counted


def crowded(calls: Counter[str], depth: int) -> TaskScheduler:
    """Return a pool with ten busy devices and `depth` tasks that wait for them, of ten kinds."""
    registry = StrategyRegistry()
    registry.register("counting", CountingFifo(calls))
    devices = [device(f"d{n}", tag) for n, tag in enumerate(TAGS)]
    scheduler = pool(*devices, registry=registry, strategy="counting", max_queue_depth=20_000)
    for number in range(depth + len(devices)):
        scheduler.admit([entry(f"t{number}", TAGS[number % len(TAGS)])], START + number)
    assert (len(scheduler.queue), len(scheduler.held)) == (depth, len(devices))
    calls.clear()
    return scheduler


@pytest.mark.parametrize("depth", [100, 20_000])
def test_a_release_costs_the_same_however_long_the_queue_is(calls: Counter[str], depth: int) -> None:
    """One task of each demand is looked at, and nothing is ranked again."""
    scheduler = crowded(calls, depth)
    lease = scheduler.held[0]
    scheduler.settle([settlement(SettleKind.RELEASE, lease)], START + depth)
    assert len(scheduler.held) == len(TAGS)
    assert calls == {"matches": 1, "choose": 1}


@pytest.mark.parametrize("depth", [100, 19_000])
def test_an_admission_costs_the_same_however_long_the_queue_is(calls: Counter[str], depth: int) -> None:
    """Where no device is idle, only the new task is looked at."""
    scheduler = crowded(calls, depth)
    scheduler.admit([entry("new", TAGS[0])], START + depth)
    assert calls == {"rank": 1}


@pytest.mark.parametrize("depth", [100, 19_000])
def test_a_requeue_costs_the_same_however_long_the_queue_is(calls: Counter[str], depth: int) -> None:
    """A task that comes back is put in its place without moving the others."""
    scheduler = crowded(calls, depth)
    lease = scheduler.held[0]
    again = entry(lease.task_id, TAGS[0], attempts=1, known=True)
    scheduler.settle([settlement(SettleKind.REQUEUE, lease, again)], START + depth)
    assert next(held for held in scheduler.held if held.task_id == lease.task_id).attempt == 2
    assert calls == {"rank": 1, "matches": 1, "choose": 1}


def test_demands_that_nobody_meets_cost_next_to_nothing(calls: Counter[str]) -> None:
    """Thousands of tasks that wait for something else are not compared with each idle device."""
    scheduler = pool(*(device(f"d{n}") for n in range(50)), max_queue_depth=20_000)
    scheduler.admit([entry(f"t{n}", f"nobody-has-{n}") for n in range(5_000)], START)
    calls.clear()
    assert not scheduler.assign(START)
    assert calls == {}

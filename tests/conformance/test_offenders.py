"""The tests for authors find what they are for: each rule is broken once."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from toolcrib.activities.drivers.local import LocalDriver
from toolcrib.activities.runners import aside
from toolcrib.scheduling.strategies import FifoMatch
from toolcrib.worker import (
    AssignmentStrategy,
    DeviceSpec,
    Driver,
    GoalRunner,
    LeaseContext,
    PooledDevice,
    Rank,
    Waiting,
)
from toolcrib.worker.conformance import DriverConformance, GoalRunnerConformance, StrategyConformance


class Scripted:
    """A runner whose goals are functions of the test's."""

    def __init__(self, does: Callable[[LeaseContext], Any]) -> None:
        self._does = does

    async def run(self, goal: str, context: LeaseContext) -> Any:
        return await self._does(context)


class Runners(GoalRunnerConformance):
    goal = failing_goal = endless_goal = "any"

    def __init__(self, does: Callable[[LeaseContext], Any]) -> None:
        self._does = does

    def runner(self) -> GoalRunner:
        return Scripted(self._does)


class Impatient(Runners):
    time_limit = 1.0


def test_results_that_cannot_be_kept() -> None:
    """A set is no JSON."""

    async def returns_a_set(_: LeaseContext) -> Any:
        return {1}

    with pytest.raises(AssertionError, match="the result is not JSON"):
        Runners(returns_a_set).test_what_it_returns_can_be_kept()


def test_runs_that_get_in_each_others_way() -> None:
    """A lock that belongs to one loop serves one run."""
    lock = asyncio.Lock()

    async def with_a_lock(_: LeaseContext) -> None:
        async with lock:
            await asyncio.sleep(0.2)

    with pytest.raises(AssertionError, match="is bound to a different event loop"):
        Impatient(with_a_lock).test_it_runs_several_at_a_time()


def test_failures_that_are_not_told() -> None:
    """A verdict in the result is no verdict; and an error needs words."""

    async def says_so(_: LeaseContext) -> str:
        return "failed"

    with pytest.raises(AssertionError, match="it returned 'failed'"):
        Runners(says_so).test_it_tells_a_failure()


def test_runs_that_do_not_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deaf ones are found, and those that have ended before, and those that leave processes of their own."""
    monkeypatch.setattr(aside, "STOP_WITHIN", 1.1)
    heard = threading.Event()

    async def deaf(_: LeaseContext) -> None:
        while not heard.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    with pytest.raises(AssertionError, match="it does not stop: the runner of lease"):
        Runners(deaf).test_it_stops_when_it_is_cancelled()
    heard.set()

    async def soon_over(_: LeaseContext) -> None:
        return None

    with pytest.raises(AssertionError, match="it ended by itself"):
        Runners(soon_over).test_it_stops_when_it_is_cancelled()
    started: list[subprocess.Popen[bytes]] = []

    async def leaves_one(_: LeaseContext) -> None:
        started.append(subprocess.Popen(["sleep", "300"]))  # noqa: ASYNC220 - that is the point
        await asyncio.Event().wait()

    with pytest.raises(AssertionError, match=r"processes that it started without the lease's guard are left: \[\d+\]"):
        Runners(leaves_one).test_it_stops_when_it_is_cancelled()
    started[0].kill()
    started[0].wait()


def test_a_runner_sees_that_it_is_to_stop() -> None:
    """One that blocks its thread can look at `cancelled`."""

    async def blocks(context: LeaseContext) -> None:
        while not context.cancelled:
            context.stop.wait(0.01)
        raise asyncio.CancelledError

    Runners(blocks).test_it_stops_when_it_is_cancelled()


class Drivers(DriverConformance):
    def __init__(self, driver: LocalDriver) -> None:
        self._driver = driver

    def driver(self) -> Driver:
        return self._driver

    def device(self) -> DeviceSpec:
        return DeviceSpec(id="d", driver="mine", driver_type="mine")


class Nameless(LocalDriver):
    def physical_id(self, device: DeviceSpec, host_id: str) -> str:
        return device.id


class Greedy(LocalDriver):
    async def prepare(self, device: DeviceSpec, context: LeaseContext) -> None:
        context.environment.clear()


class Odd(LocalDriver):
    async def prepare(self, device: DeviceSpec, context: LeaseContext) -> None:
        context.environment["PORT"] = 5037  # type: ignore[assignment]


class Hasty(LocalDriver):
    def __init__(self) -> None:
        self.prepared = False

    async def prepare(self, device: DeviceSpec, context: LeaseContext) -> None:
        await asyncio.sleep(0.01)
        self.prepared = True

    async def clean(self, device: DeviceSpec, context: LeaseContext) -> None:
        if not self.prepared:
            raise RuntimeError("nothing to clean")


def test_drivers_that_break_a_rule() -> None:
    """Names without a kind, variables that are gone or no texts, and a clean-up that needs what came before."""
    with pytest.raises(AssertionError, match="'d' names nothing of that kind"):
        Drivers(Nameless()).test_it_names_the_physical_device()
    with pytest.raises(AssertionError, match="variables of the lease are gone or changed"):
        Drivers(Greedy()).test_it_serves_one_lease_after_the_other()
    with pytest.raises(AssertionError, match=r"variables that no process can have: \['PORT'\]"):
        Drivers(Odd()).test_it_serves_one_lease_after_the_other()
    with pytest.raises(RuntimeError, match="nothing to clean"):
        Drivers(Hasty()).test_it_cleans_what_was_not_prepared()


class Strategies(StrategyConformance):
    def __init__(self, kind: type[FifoMatch]) -> None:
        self._kind = kind

    def strategy(self) -> AssignmentStrategy:
        return self._kind()


class Moody(FifoMatch):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def rank(self, task: Any) -> Rank:
        self.asked += 1
        return (self.asked,)

    def choose(self, task: Any, devices: Sequence[PooledDevice]) -> PooledDevice | None:
        self.asked += 1
        return devices[self.asked % len(devices)]


class Uneven(FifoMatch):
    def rank(self, task: Waiting) -> Rank:
        return (1.0,) * task.priority


class Inventive(FifoMatch):
    def choose(self, task: Any, devices: Sequence[PooledDevice]) -> PooledDevice | None:
        return PooledDevice(**{**vars(devices[0]), "device_id": "dream"})


class Marking(FifoMatch):
    def choose(self, task: Any, devices: Sequence[PooledDevice]) -> PooledDevice | None:
        devices[0].properties["last"] = task.task_id
        return devices[0]


def test_strategies_that_break_a_rule() -> None:
    """Moods, ranks that cannot be compared, devices that were not offered, and marks on the pool's own."""
    with pytest.raises(AssertionError, match="depends on what was asked before"):
        Strategies(Moody).test_ranks_are_always_the_same()
    with pytest.raises(AssertionError, match="depends on what was asked before"):
        Strategies(Moody).test_choices_are_always_the_same()
    with pytest.raises(AssertionError, match="ranks are not all of one length"):
        Strategies(Uneven).test_ranks_are_numbers_that_can_be_compared()
    with pytest.raises(AssertionError, match="was not offered"):
        Strategies(Inventive).test_choices_are_among_the_devices()
    with pytest.raises(AssertionError, match="it has changed a task or a device"):
        Strategies(Marking).test_it_changes_nothing()

"""What strategies have to do, as tests."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Sequence

from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.device import DeviceState, PooledDevice
from toolcrib.scheduling.strategies import AssignmentStrategy, checked_rank
from toolcrib.scheduling.waiting import Waiting

NOW = 1_700_000_000.0


class StrategyConformance:
    """Inherit from it, and return the strategy. Tasks and devices of many kinds are put before it."""

    def strategy(self) -> AssignmentStrategy:
        """Return a new strategy."""
        raise NotImplementedError("define strategy() in your test class: see its docstring")

    def tasks(self) -> list[Waiting]:
        """Return tasks that wait; add some of your own kinds."""
        demands = [Constraints(), Constraints(driver_type="local", tags=("linux",)), Constraints(device_id="d-2")]
        kinds = itertools.product(demands, (1, 3, 5), (0, 2))
        return [
            Waiting(
                task_id=f"task-{number}",
                constraints=demand,
                priority=priority,
                submitted_at=NOW + number % 4,
                sequence=number,
                attempts=attempts,
                max_attempts=None,
                check_at=NOW + 600,
                heard_at=NOW,
            )
            for number, (demand, priority, attempts) in enumerate(kinds)
        ]

    def devices(self) -> list[PooledDevice]:
        """Return idle devices in the order of their registration; add some of your own kinds."""
        return [
            PooledDevice(
                host_id=f"h-{number % 2}",
                device_id=f"d-{number}",
                driver_type="local",
                tags=("linux",) * (number % 2),
                state=DeviceState.IDLE,
                since=NOW,
                properties={"rack": str(number)},
                failures=number % 3,
            )
            for number in range(5)
        ]

    def test_ranks_are_numbers_that_can_be_compared(self) -> None:
        """Tuples of numbers, as long as one another, so that any two tasks have an order."""
        strategy = self.strategy()
        ranks = [checked_rank(strategy.rank(task)) for task in self.tasks()]
        assert len({len(rank) for rank in ranks}) == 1, "ranks are not all of one length"
        assert all(math.isfinite(part) for rank in ranks for part in rank), "a rank is not finite"

    def test_ranks_are_always_the_same(self) -> None:
        """Whoever asks, in whatever order, and after whatever was asked before: pools replay their decisions."""
        tasks, strategy, other = self.tasks(), self.strategy(), self.strategy()
        first = [strategy.rank(task) for task in tasks]
        assert [strategy.rank(task) for task in reversed(tasks)] == first[::-1], "it depends on what was asked before"
        assert [other.rank(task) for task in tasks] == first, "it depends on the instance"

    def test_choices_are_among_the_devices(self) -> None:
        """One of those that are offered, or None; also when there is but one."""
        strategy = self.strategy()
        for task, devices in self._offers():
            chosen = strategy.choose(task, devices)
            assert chosen is None or any(chosen is device for device in devices), f"{chosen} was not offered"

    def test_choices_are_always_the_same(self) -> None:
        """For the same task and devices, whatever was asked before, and of whichever instance."""
        strategy, other = self.strategy(), self.strategy()
        first = [_key(strategy.choose(task, devices)) for task, devices in self._offers()]
        again = [_key(strategy.choose(task, devices)) for task, devices in reversed(self._offers())]
        assert again == first[::-1], "it depends on what was asked before"
        assert [_key(other.choose(task, devices)) for task, devices in self._offers()] == first

    def test_it_changes_nothing(self) -> None:
        """Tasks and devices are the pool's."""
        strategy = self.strategy()
        for task, devices in self._offers():
            before = copy.deepcopy((task, devices))
            strategy.rank(task)
            strategy.choose(task, devices)
            assert (task, devices) == before, "it has changed a task or a device"

    def _offers(self) -> list[tuple[Waiting, Sequence[PooledDevice]]]:
        devices = self.devices()
        offers = (tuple(devices), tuple(devices[::-1]), *((device,) for device in devices))
        return [(task, offer) for task in self.tasks() for offer in offers]


def _key(device: PooledDevice | None) -> str | None:
    return None if device is None else device.key

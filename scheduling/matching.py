"""Who gets which device: walks the waiting tasks in their order and asks the strategy about each that a device fits."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence

from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.device import PooledDevice
from toolcrib.scheduling.quoting import shown
from toolcrib.scheduling.references import runs
from toolcrib.scheduling.strategies import AssignmentStrategy
from toolcrib.scheduling.waiting import TaskQueue, Waiting


def matches(
    queue: TaskQueue,
    idle: Sequence[PooledDevice],
    coming: Callable[[], Iterable[PooledDevice]],
    strategy: AssignmentStrategy,
    may_go_on: Callable[[], bool],
) -> Iterator[tuple[Waiting, PooledDevice]]:
    """Yield tasks and the devices they get, one pair at a time, as long as `may_go_on`.

    Whoever takes a pair removes its task from `queue` before asking for the next one. Only the first task of each
    demand is looked at, so that the length of the queue does not matter; another one only after tasks that let the
    devices pass. `coming` returns the devices that are free or will be: a task may wait for them and avoid others.

    Raises:
        ValueError: the strategy chose a device that it was not offered.
    """
    free = {device.key: device for device in idle}
    passed_over: dict[Constraints, int] = {}
    offers = _Offers(idle)
    heads = [(queue.place(demand, 0), demand) for demand in queue.demands() if offers.may_meet(demand)]
    heapq.heapify(heads)
    while heads and free and may_go_on():
        _, demand = heapq.heappop(heads)
        fitting = tuple(device for device in free.values() if demand.matches(device))
        if not fitting:
            continue
        passed = passed_over.get(demand, 0)
        task = queue.at(demand, passed)
        offered = _elsewhere(task, fitting, coming)
        chosen = _choice(strategy, task, offered) if offered else None
        if chosen is None:
            passed_over[demand] = passed = passed + 1
        else:
            yield task, free.pop(chosen.key)
        if passed < queue.size(demand):
            heapq.heappush(heads, (queue.place(demand, passed), demand))


def shunned(demand: Constraints, avoids: Sequence[str], coming: Iterable[PooledDevice]) -> Sequence[str]:
    """Return the keys of devices that a task leaves alone: those it `avoids`, if any other that fits comes free."""
    elsewhere = any(device.key not in avoids and demand.matches(device) for device in coming)
    return avoids if elsewhere else ()


def _elsewhere(
    task: Waiting, fitting: tuple[PooledDevice, ...], coming: Callable[[], Iterable[PooledDevice]]
) -> tuple[PooledDevice, ...]:
    """Return those of the idle devices that fit `task` that it may be offered, on other hosts than before if it can.

    A host that died is known to be dead only somewhat later, and until then its other devices look idle.
    """
    if not task.avoids:
        return fitting
    keys = shunned(task.constraints, task.avoids, coming())
    offered = tuple(device for device in fitting if device.key not in keys)
    hosts = {key.partition("/")[0] for key in task.avoids}
    return tuple(device for device in offered if device.host_id not in hosts) or offered


class _Offers:
    """What idle devices offer, all taken together: who asks for more need not be compared with each of them."""

    def __init__(self, devices: Sequence[PooledDevice]) -> None:
        self._devices = frozenset(device.device_id for device in devices)
        self._hosts = frozenset(device.host_id for device in devices)
        self._types = frozenset(device.driver_type for device in devices)
        self._tags = frozenset(tag for device in devices for tag in device.tags)
        self._workflows = frozenset(device.workflows for device in devices)

    def may_meet(self, demand: Constraints) -> bool:
        """Return False if no device matches, True if one might."""
        return (
            (demand.device_id is None or demand.device_id in self._devices)
            and (demand.host_id is None or demand.host_id in self._hosts)
            and (demand.driver_type is None or demand.driver_type in self._types)
            and self._tags.issuperset(demand.tags)
            and (demand.workflow is None or any(runs(offered, demand.workflow) for offered in self._workflows))
        )


def _choice(strategy: AssignmentStrategy, task: Waiting, fitting: tuple[PooledDevice, ...]) -> PooledDevice | None:
    chosen = strategy.choose(task, fitting)
    if chosen is not None and not any(device is chosen for device in fitting):
        raise ValueError(f"it chose {shown(chosen)} for {task.task_id}, which was not offered")
    return chosen

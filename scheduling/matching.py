"""Who gets which device: walks the waiting tasks in their order and asks the strategy about each that a device fits."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence

from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.device import PooledDevice
from toolcrib.scheduling.quoting import shown
from toolcrib.scheduling.strategies import AssignmentStrategy
from toolcrib.scheduling.waiting import TaskQueue, Waiting


def matches(
    queue: TaskQueue, idle: Sequence[PooledDevice], strategy: AssignmentStrategy, may_go_on: Callable[[], bool]
) -> Iterator[tuple[Waiting, PooledDevice]]:
    """Yield tasks and the devices they get, one pair at a time, as long as `may_go_on`.

    Whoever takes a pair removes its task from `queue` before asking for the next one. Only the first task of each
    demand is looked at, so that the length of the queue does not matter.

    Raises:
        ValueError: the strategy chose a device that it was not offered.
    """
    free = {device.key: device for device in idle}
    passed_over: dict[Constraints, int] = {}
    heads = [
        (queue.place(demand, 0), demand)
        for demand in queue.demands()
        if any(demand.matches(device) for device in free.values())
    ]
    heapq.heapify(heads)
    while heads and free and may_go_on():
        _, demand = heapq.heappop(heads)
        fitting = tuple(device for device in free.values() if demand.matches(device))
        if not fitting:
            continue
        passed = passed_over.get(demand, 0)
        task = queue.at(demand, passed)
        chosen = _choice(strategy, task, fitting)
        if chosen is None:
            passed_over[demand] = passed = passed + 1
        else:
            yield task, free.pop(chosen.key)
        if passed < queue.size(demand):
            heapq.heappush(heads, (queue.place(demand, passed), demand))


def _choice(strategy: AssignmentStrategy, task: Waiting, fitting: tuple[PooledDevice, ...]) -> PooledDevice | None:
    chosen = strategy.choose(task, fitting)
    if chosen is not None and not any(device is chosen for device in fitting):
        raise ValueError(f"it chose {shown(chosen)} for {task.task_id}, which was not offered")
    return chosen

"""A third party's strategy with a fault: it cannot choose a device for tasks of priority 5."""

from __future__ import annotations

from collections.abc import Sequence

from toolcrib.scheduling.device import PooledDevice
from toolcrib.scheduling.strategies import PriorityFifo, assignment_strategy
from toolcrib.scheduling.waiting import Waiting

MOODY = "moody"


@assignment_strategy(MOODY)
class Moody(PriorityFifo):
    """Orders by priority, and raises when it comes to the last one."""

    def choose(self, task: Waiting, devices: Sequence[PooledDevice]) -> PooledDevice | None:
        """Take the first, or raise."""
        if task.priority == 5:
            raise RuntimeError(f"not in the mood for {task.task_id}")
        return super().choose(task, devices)

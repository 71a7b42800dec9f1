"""A third party's strategy: the oldest task gets the device that was registered last."""

from __future__ import annotations

from collections.abc import Sequence

from toolcrib.scheduling.device import PooledDevice
from toolcrib.scheduling.strategies import Rank, assignment_strategy
from toolcrib.scheduling.waiting import Waiting

LAST_DEVICE = "last_device"


@assignment_strategy(LAST_DEVICE)
class LastDevice:
    """First come, last device."""

    def rank(self, task: Waiting) -> Rank:
        """Order by submission."""
        return (task.submitted_at, task.sequence)

    def choose(self, task: Waiting, devices: Sequence[PooledDevice]) -> PooledDevice | None:
        """Take the one registered last."""
        return devices[-1]

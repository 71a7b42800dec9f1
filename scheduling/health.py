"""Devices that fail: they rest, longer each time, and then wait for a person."""

from __future__ import annotations

from typing import Final

from toolcrib.scheduling.device import DeviceState, PooledDevice
from toolcrib.scheduling.messages import LeaseEnd
from toolcrib.scheduling.pool import PoolState
from toolcrib.scheduling.registration import device_freed

REST: Final = 10.0
"""Seconds that a device rests, for each failure in a row."""
QUARANTINE_AFTER: Final = 3
"""Failures in a row after which a device is quarantined."""
MAX_REASON_LENGTH: Final = 120
"""Of the text that says why a device rests or is quarantined: it is part of the pool's state."""


def judge(device: PooledDevice, end: LeaseEnd, now: float) -> None:
    """Take note of what the end of a lease says of its device, which is then to be freed.

    Only a lease that lapsed is a failure of the device, or of its host; a task that failed is not.
    """
    if end.served:
        forgive(device)
        return
    device.failures += 1
    times = "failed once" if device.failures == 1 else f"failed {device.failures} times in a row"
    device.fault = " ".join(f"{times}: {end.reason}".split())[:MAX_REASON_LENGTH]
    if device.failures < QUARANTINE_AFTER:
        device.rests_until = now + REST * device.failures
    elif device.quarantine is None:
        device.quarantine = device.fault


def forgive(device: PooledDevice) -> None:
    """Forget the failures of a device that is known to work."""
    device.failures, device.fault, device.rests_until = 0, None, None


def wake(state: PoolState, now: float) -> None:
    """Free the devices that have rested long enough."""
    for device in list(state.devices.values()):
        if device.state is DeviceState.RESTING and device.rests_until is not None and device.rests_until <= now:
            device_freed(state, device.key, now)


def next_wake(state: PoolState) -> float | None:
    """Return when the next device will have rested, in unix seconds; None if none rests."""
    ends = (device.rests_until for device in state.devices.values() if device.state is DeviceState.RESTING)
    return min((end for end in ends if end is not None), default=None)

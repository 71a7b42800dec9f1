"""Drivers that tests plug into their hosts, as `support.drivers:flaky`."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path

from toolcrib.activities.context import LeaseContext
from toolcrib.scheduling.device import DeviceSpec


class Flaky:
    """A driver that cannot prepare the devices that a test says are broken."""

    def __init__(self) -> None:
        self.broken: set[str] = set()
        """Ids of devices."""

    def physical_id(self, device: DeviceSpec, host_id: str) -> str:
        """Return host and device."""
        return f"flaky/{host_id}/{device.id}"

    async def prepare(self, device: DeviceSpec, context: LeaseContext) -> None:
        """Fail for a device that is broken."""
        if device.id in self.broken:
            raise RuntimeError("its battery is flat")

    async def clean(self, device: DeviceSpec, context: LeaseContext) -> None:
        """Do nothing."""


flaky = Flaky()
FLAKY = "support.drivers:flaky"


def flaky_slot(device_id: str) -> DeviceSpec:
    """Describe a device that cannot be prepared while `flaky` says that it is broken."""
    return DeviceSpec(id=device_id, driver=FLAKY, driver_type="local")


class Slow:
    """A driver whose clean-up lasts until the test lets it end, or it is cancelled; it has a thread of its own."""

    def __init__(self) -> None:
        self.cleans: list[str] = []
        self.may_end = threading.Event()

    def physical_id(self, device: DeviceSpec, host_id: str) -> str:
        """Return host and device."""
        return f"slow/{host_id}/{device.id}"

    async def prepare(self, device: DeviceSpec, context: LeaseContext) -> None:
        """Do nothing."""

    async def clean(self, device: DeviceSpec, context: LeaseContext) -> None:
        """Say so, and take as long as the test wants."""
        self.cleans.append(context.lease.id)
        while not self.may_end.is_set():
            await asyncio.sleep(0.01)


class Deadly(Flaky):
    """A driver that takes its worker down with it, before anything of the lease was claimed: once, then no more."""

    def physical_id(self, device: DeviceSpec, host_id: str) -> str:
        """Kill the process if the file that the device names is there."""
        trap = Path(device.properties["trap"])
        if trap.exists():
            trap.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return f"deadly/{host_id}/{device.id}"


class Wiping(Flaky):
    """A driver that blocks while it prepares, for the property `seconds`; of broken devices the clean-up fails."""

    async def prepare(self, device: DeviceSpec, context: LeaseContext) -> None:
        """Block."""
        time.sleep(float(device.properties["seconds"]))  # noqa: ASYNC251 - that is the point

    async def clean(self, device: DeviceSpec, context: LeaseContext) -> None:
        """Fail for a device that is broken."""
        if device.id in self.broken:
            raise RuntimeError("it is not wiped")


slow = Slow()
SLOW = "support.drivers:slow"
wiping = Wiping()
WIPING = "support.drivers:wiping"
DEADLY = "support.drivers:Deadly"

"""Drivers that tests plug into their hosts, as `support.drivers:flaky`."""

from __future__ import annotations

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

"""Plain slots: a device that is nothing but the right to run one more task on its host."""

from __future__ import annotations

from collections.abc import Mapping

from toolcrib.activities.context import LeaseContext
from toolcrib.activities.drivers.finding import FoundDevice, numbered
from toolcrib.scheduling.device import DeviceSpec


class LocalDriver:
    """The driver `local`: there is nothing to prepare and nothing to clean."""

    async def find(self, count: int | None, properties: Mapping[str, str]) -> list[FoundDevice]:
        """Return as many slots as the host file asks for: slot-1, slot-2 and so on."""
        return numbered("slot", count)

    def physical_id(self, device: DeviceSpec, host_id: str) -> str:
        """Return host and device: slots of two hosts on one machine have nothing in common."""
        return f"local/{host_id}/{device.id}"

    async def prepare(self, device: DeviceSpec, context: LeaseContext) -> None:
        """Do nothing: a slot is always ready."""

    async def clean(self, device: DeviceSpec, context: LeaseContext) -> None:
        """Do nothing: the lease's folder and processes are not the driver's."""

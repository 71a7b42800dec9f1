"""A driver for devices that two hosts of one machine have in common, to be named as `support.shared_driver:Shared`."""

from __future__ import annotations

from toolcrib.activities.drivers.local import LocalDriver
from toolcrib.scheduling.device import DeviceSpec


class Shared(LocalDriver):
    """Devices of one id are one physical device, whichever host names it."""

    def physical_id(self, device: DeviceSpec, host_id: str) -> str:
        """Return the device's id alone."""
        return f"shared/{device.id}"


SHARED = "support.shared_driver:Shared"

"""A host and all its devices: those that its file lists, and those that drivers find when it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import structlog

from toolcrib.activities.drivers.care import DeviceCare
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.worker.host_file import HostFile

_log = structlog.get_logger(__name__)


def load_drivers(host: HostFile) -> dict[str, DeviceCare]:
    """Return the drivers of a host's devices by name, each loaded once.

    Raises:
        InvalidRequest: one is unknown or cannot be loaded.
    """
    names = [device.driver for device in host.devices] + [search.driver for search in host.searches]
    return {name: DeviceCare(name) for name in dict.fromkeys(names)}


async def with_found_devices(host: HostFile, drivers: Mapping[str, DeviceCare]) -> HostFile:
    """Return the host with the devices that its drivers find beside those that are listed.

    Raises:
        InvalidRequest: a driver finds none, or one with an id that is taken, or cannot look.
    """
    devices = {device.id: device for device in host.devices}
    for search in host.searches:
        found = await drivers[search.driver].find(search)
        _log.info("devices found", host=host.id, driver=search.driver, devices=[device.id for device in found])
        for device in found:
            if device.id in devices:
                raise InvalidRequest(
                    f"driver {search.driver} has found a device {device.id}, and the host has one already",
                    hint="Let one entry of the host file stand for it.",
                )
            devices[device.id] = device
    return replace(host, devices=tuple(devices.values()), searches=())

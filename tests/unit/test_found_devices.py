"""A host's devices are those that its file lists, and those that drivers find."""

from __future__ import annotations

import pytest

from support.lab import slot
from toolcrib.activities.drivers.finding import DeviceSearch
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.worker.found_devices import load_drivers, with_found_devices
from toolcrib.worker.host_file import HostFile

TWO_SLOTS = DeviceSearch(driver="local", driver_type="local", count=2)


async def test_found_devices_come_after_the_listed_ones() -> None:
    """In the order of the file, and each driver is loaded once."""
    host = HostFile(id="h", devices=(slot("first"),), searches=(TWO_SLOTS,))
    drivers = load_drivers(host)
    assert list(drivers) == ["local"]
    found = await with_found_devices(host, drivers)
    assert [device.id for device in found.devices] == ["first", "slot-1", "slot-2"]
    assert found.searches == ()


@pytest.mark.parametrize(
    "host",
    [
        HostFile(id="h", devices=(slot("slot-2"),), searches=(TWO_SLOTS,)),
        HostFile(id="h", devices=(), searches=(TWO_SLOTS, TWO_SLOTS)),
    ],
)
async def test_a_device_is_found_once(host: HostFile) -> None:
    """One that is listed as well, or found twice, is refused when the host starts."""
    with pytest.raises(InvalidRequest, match="and the host has one already"):
        await with_found_devices(host, load_drivers(host))

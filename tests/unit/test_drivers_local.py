"""The driver of plain slots."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.guarded import running_lab
from support.leases import lease_context
from toolcrib.activities.drivers import load_driver
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.errors import InvalidRequest


async def test_local_slot_needs_no_preparation(tmp_path: Path) -> None:
    """The driver `local` is found by name, and changes neither environment nor folder of a lease."""
    driver = load_driver("local")
    async with running_lab() as lab:
        context = lease_context(lab.guard, tmp_path)
        before = dict(context.environment)
        await driver.prepare(context.device, context)
        await driver.clean(context.device, context)
        assert context.environment == before
        assert list(context.folder.iterdir()) == []


def test_slots_of_two_hosts_are_two_devices() -> None:
    """What a slot is called on its machine holds host and device, so that hosts share none."""
    slot = DeviceSpec(id="slot-1", driver="local", driver_type="local")
    driver = load_driver("local")
    assert [driver.physical_id(slot, host) for host in ("a", "b")] == ["local/a/slot-1", "local/b/slot-1"]


class Nameless:
    """A driver that does not say which physical device is which."""

    async def prepare(self, *_: object) -> None: ...

    async def clean(self, *_: object) -> None: ...


def test_a_driver_has_to_name_its_devices() -> None:
    """A driver whose devices could not be locked is refused when its host starts."""
    with pytest.raises(InvalidRequest, match="has no method physical_id"):
        load_driver(f"{__name__}:Nameless")

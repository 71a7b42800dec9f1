"""The driver of plain slots."""

from __future__ import annotations

from pathlib import Path

from support.guarded import running_lab
from support.leases import lease_context
from toolcrib.activities.drivers import load_driver


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

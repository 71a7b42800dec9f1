"""What keeps the processes of a lease alive while its device is cleaned."""

from __future__ import annotations

from pathlib import Path

from support.guarded import running_lab
from support.leases import lease_context
from toolcrib.activities.fencing import ServedFencing
from toolcrib.activities.guard import boottime
from toolcrib.activities.locks import LockFolder
from toolcrib.activities.possession import Possessions


async def test_a_clean_up_has_its_time_though_the_lease_is_lost(tmp_path: Path) -> None:
    """Its processes run on past the lease's deadline, however that moves, until their own; nothing else does."""
    (tmp_path / "locks").mkdir()
    async with running_lab() as lab:
        lease = lease_context(lab.guard, tmp_path).lease
        possession = Possessions(lab.guard, LockFolder(tmp_path / "locks"), ServedFencing(tmp_path / "served")).of(
            lease
        )
        async with possession.of("device"):
            possession.extend(boottime() - 1)
            assert await (await lab.start("sleep", "60", lease=lease.id)).wait() == -9
            possession.is_cleaned_within(60)
            wiped = await lab.start("sh", "-c", "sleep 0.3", lease=lease.id)
            possession.extend(boottime() - 1)
            assert await wiped.wait() == 0
            possession.is_cleaned_within(0.2)
            assert await (await lab.start("sleep", "60", lease=lease.id)).wait() == -9

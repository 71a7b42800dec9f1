"""What an activity sees of the lease under which its workflow runs, and what becomes of it when that is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from support.leases import lease_context
from toolcrib.activities.guard import Guard
from toolcrib.activities.held_leases import HeldLeases, current_lease
from toolcrib.activities.renewal import LeaseLost
from toolcrib.activities.run_records import RunRecords
from toolcrib.scheduling.errors import InvalidRequest

LEASE = "task-1.1.7"


class Noting:
    """A reporter that notes what it gets, in its own loop."""

    def __init__(self, arrived: asyncio.Queue[tuple[float, str | None]]) -> None:
        self._arrived = arrived
        self._loop = asyncio.get_running_loop()

    def report(self, value: float, message: str | None = None) -> None:
        """Note it."""
        assert asyncio.get_running_loop() is self._loop
        self._arrived.put_nowait((value, message))

    async def flush(self) -> None:
        """Have nothing left."""


@pytest.fixture
async def leases(tmp_path: Path) -> AsyncIterator[HeldLeases]:
    """A host's leases, one of which is held."""
    guard = await Guard.start()
    leases = HeldLeases()
    leases.open(lease_context(guard, tmp_path))
    yield leases
    await guard.close()


async def test_a_lease_is_seen_while_it_is_held(leases: HeldLeases) -> None:
    """And by who runs under it alone; then it is lost, and so is what was got of it before."""
    held = leases.get(LEASE)
    with pytest.raises(LeaseLost, match="no activity under a lease"):
        current_lease()
    with held.visible():
        lease = current_lease()
        assert (lease.lease.id, lease.cancelled) == (LEASE, False)
        lease.progress(0.5, "half")
        with pytest.raises(InvalidRequest):
            lease.progress(1.5)
        assert await held.close(5.0)
        with pytest.raises(LeaseLost, match="no longer held"):
            current_lease()
    with pytest.raises(LeaseLost, match="no longer held"):
        lease.progress(0.6)
    assert lease.cancelled
    for unknown in (LEASE, "task-2.1.8"):
        with pytest.raises(LeaseLost, match=f"lease {unknown} is no"):
            leases.get(unknown)
    with pytest.raises(LeaseLost, match="under leases only"):
        leases.get(None)


async def test_progress_is_reported_from_any_thread(tmp_path: Path) -> None:
    """It arrives in the loop in which the lease is renewed."""
    guard = await Guard.start()
    context, arrived = lease_context(guard, tmp_path), asyncio.Queue[tuple[float, str | None]]()
    context.reporter = Noting(arrived)
    held = HeldLeases().open(context)
    await asyncio.to_thread(held.shared.progress, 0.25, "from a thread")
    async with asyncio.timeout(30):
        assert await arrived.get() == (0.25, "from a thread")
    await guard.close()


async def test_a_lease_that_ends_cancels_its_activities(leases: HeldLeases) -> None:
    """One that ends is waited for; one that does not is left, and keeps the device as long as it goes on."""
    held = leases.get(LEASE)
    polite, deaf = Future[None](), Future[None]()
    asked: list[str] = []

    def end_politely() -> None:
        asked.append("polite")
        polite.set_result(None)

    held.entered(polite, end_politely)
    held.entered(deaf, lambda: asked.append("deaf"))
    assert not await held.close(1.1)
    assert asked == ["polite", "deaf"]
    assert held.closed.done()
    assert [user.done() for user in held.shared.users] == [True, False]


def test_runs_are_remembered_until_they_have_ended(tmp_path: Path) -> None:
    """Whatever their ids are, and over the life of the worker; a file without a name is none."""
    ids = ["toolcrib-run-" + "x" * 900, "toolcrib-run-a/b.1.7", "toolcrib-run-ä"]
    records = RunRecords(tmp_path / "runs")
    assert records.all() == []
    for workflow_id in ids:
        records.note(workflow_id)
    records.note(ids[0])
    (tmp_path / "runs" / "cut-off").touch()
    assert sorted(RunRecords(tmp_path / "runs").all()) == sorted(ids)
    for workflow_id in ids:
        records.forget(workflow_id)
        records.forget(workflow_id)
    assert records.all() == []

"""A lease binds one task to one device. Rows S1-38 to S1-42."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

from support.lab import Lab, slot, until_pool, until_status
from support.processes import host_file, toolcrib
from support.servers import connect
from toolcrib.client import PoolView, TaskRequest, Toolcrib
from toolcrib.worker.embedded import EmbeddedServer


async def test_s1_38_task_and_device_are_bound_atomically(
    server: EmbeddedServer, namespace: str, tmp_path: Path
) -> None:
    """However often the scheduler is killed under load, a leased device has its task, and all of them come back."""
    client = await connect(server.address, namespace)
    crib = Toolcrib(client)
    devices = [slot("a"), slot("b"), slot("c")]
    tasks = []
    async with toolcrib(client, tmp_path, "worker", "--config", str(host_file(tmp_path, "h", devices, pool="default"))):
        for _ in range(3):
            async with toolcrib(client, tmp_path, "worker", "--role", "scheduler") as scheduler:
                await until_pool(crib, lambda pool: len(pool.devices) == 3)
                tasks += await crib.submit_many([TaskRequest(goal="true")] * 10)
                _check_bound(await crib.pool().show())
                scheduler.kill()
                await scheduler.wait()
        async with toolcrib(client, tmp_path, "worker", "--role", "scheduler"):
            await asyncio.gather(*(task.result() for task in tasks))
            idle = await until_pool(crib, lambda pool: pool.leased == 0)
    assert [device.state for device in idle.devices] == ["idle"] * 3


async def test_s1_39_an_assignment_has_a_bounded_lease(lab: Lab) -> None:
    """The attempt says until when it may be claimed, which is the pool's claim timeout from now."""
    crib = await lab.pool(claim_timeout=25)
    await lab.register_only()
    (attempt,) = (await until_status(await crib.submit("echo"), "assigned")).attempts
    assert (attempt.expires_at - attempt.assigned_at).total_seconds() == 25


async def test_s1_40_a_device_has_one_task_at_a_time(lab: Lab, tmp_path: Path) -> None:
    """Of 50 tasks on 5 devices no two overlap on one, by the times that the tasks themselves wrote down."""
    crib = await lab.pool()
    journal = tmp_path / "journal"
    goal = f'b=$(date +%s%N); sleep 0.02; echo "$TOOLCRIB_DEVICE_ID $b $(date +%s%N)" >>{journal}'
    async with lab.host(devices=[slot(f"slot-{n}") for n in range(5)]):
        tasks = await crib.submit_many([TaskRequest(goal=goal, pool="lab")] * 50)
        await asyncio.gather(*(task.result() for task in tasks))
    runs = sorted((device, int(begin), int(end)) for device, begin, end in map(str.split, journal.open()))
    assert len(runs) == 50
    assert not [(a, b) for a, b in itertools.pairwise(runs) if a[0] == b[0] and b[1] < a[2]]


async def test_s1_41_all_of_an_assignment_is_recorded_together(lab: Lab) -> None:
    """One look at task and pool shows host, device, attempt, lease, expiry and reservation, and they agree."""
    crib = await lab.pool()
    await lab.register_only()
    task = await crib.submit("echo")
    view, pool = await task.status(), await crib.pool().show()
    (attempt,), (device,) = view.attempts, pool.devices
    assert (attempt.host_id, attempt.device_id, attempt.number) == ("lab-1", "slot-1", 1)
    assert attempt.lease_id == f"{task.id}.1.{attempt.fencing}"
    assert attempt.expires_at > attempt.assigned_at
    assert (device.task_id, device.lease_id, device.fencing) == (task.id, attempt.lease_id, attempt.fencing)
    assert (device.state, view.attempt) == ("leased", 1)


async def test_s1_42_a_stale_snapshot_does_not_free_a_device(lab: Lab) -> None:
    """A host that registers again, with a device that is leased, gets no second task on it."""
    crib = await lab.pool()
    await lab.register_only()
    holder = await until_status(await crib.submit("echo 1"), "assigned")
    others = [await crib.submit("echo 2"), await crib.submit("echo 3")]
    await lab.register_only()
    assert await crib.pool().assign() == 0
    assert [(await task.status()).status for task in others] == ["queued", "queued"]
    assert [device.task_id for device in (await crib.pool().show()).devices] == [holder.id]


def _check_bound(pool: PoolView) -> None:
    leased = [device for device in pool.devices if device.state == "leased"]
    assert all(device.task_id and device.lease_id for device in leased)
    assert len({device.task_id for device in leased}) == len(leased) == pool.leased

"""Hosts and devices that are taken out of service, and workers that stop: what runs may finish, nothing new begins."""

from __future__ import annotations

import asyncio
from pathlib import Path

from temporalio.worker import Worker

from support.lab import Lab, slot, until_pool, until_status
from support.processes import host_file, toolcrib
from support.runners import CONTROLLED, controlled
from toolcrib.activities.brought import Brought
from toolcrib.activities.fencing import ServedFencing
from toolcrib.activities.guard import Guard
from toolcrib.activities.lease_folders import LeaseFolders
from toolcrib.activities.locks import LockFolder
from toolcrib.activities.possession import Possessions
from toolcrib.activities.run_records import RunRecords
from toolcrib.activities.runners.under_lease import HostWork, LeasedRuns
from toolcrib.client import PoolView
from toolcrib.scheduling.names import host_queue, host_work_queue
from toolcrib.worker.found_devices import load_drivers
from toolcrib.worker.host_agent import HostAgent
from toolcrib.worker.host_file import HostFile
from toolcrib.worker.runner_names import RunnerNames


def host_states(pool: PoolView) -> list[tuple[str, bool]]:
    """Return state and service of each host."""
    return [(host.state, host.in_service) for host in pool.hosts]


async def test_s69_a_host_is_drained_and_resumed(lab: Lab) -> None:
    """Running work finishes, and the drain with it; queued work goes elsewhere, or waits until the host is resumed."""
    crib = await lab.pool()
    async with lab.host("a", [slot("one"), slot("two")], goal=CONTROLLED):
        runs = await crib.submit("drain-runs")
        await until_status(runs, "dispatched")
        assert (await crib.pool().drain_host("a")).state == "draining"
        anywhere, here = await crib.submit("drain-anywhere"), await crib.submit("drain-here", host_id="a")
        async with lab.host("b", goal=CONTROLLED):
            assert (await until_status(anywhere, "dispatched")).host_id == "b"
            reason = (await here.status()).pending_reason
            assert (reason and reason.code) == "out_of_service"
            assert host_states(await crib.pool().show()) == [("draining", False), ("online", True)]
            for goal in ("drain-runs", "drain-anywhere", "drain-here"):
                controlled.finish(goal)
            await until_status(runs, "done")
            await until_pool(crib, lambda pool: host_states(pool)[0] == ("online", False))
            assert (await here.status()).status == "queued"
            await crib.pool().resume_host("a")
            assert (await until_status(here, "done")).host_id == "a"


async def test_s67_s29_a_drained_device_keeps_nobody_waiting_in_vain(lab: Lab) -> None:
    """Who holds it may finish, and who can only have it is told; freed by a cancel, it is still drained."""
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED):
        runs = await crib.submit("drained-device")
        await until_status(runs, "dispatched")
        drained = await crib.pool().drain_device("lab-1/slot-1")
        assert (drained.state, drained.in_service, drained.task_id) == ("leased", False, runs.id)
        waits = await crib.submit("drained-device", device_id="slot-1")
        reason = (await waits.status()).pending_reason
        assert (reason and reason.text) == "the one device that fits is out of service"
        await runs.cancel()
        await until_pool(crib, lambda pool: pool.leased == 0)
        assert (await waits.status()).status == "queued"
        controlled.finish("drained-device")
        await crib.pool().resume_device("lab-1/slot-1")
        await until_status(waits, "done")


async def test_a_worker_that_stops_is_draining_until_its_work_has_ended(lab: Lab, tmp_path: Path) -> None:
    """From the signal on its idle devices are not given away; when its work is done it is offline, and exits with 0."""
    crib = await lab.pool()
    file, done = host_file(tmp_path, "a", [slot("one"), slot("two")], drain="60s"), tmp_path / "done"
    async with toolcrib(lab.client, tmp_path, "worker", "--role", "host", "--config", str(file)) as stopping:
        await until_pool(crib, lambda pool: len(pool.devices) == 2)
        runs = await crib.submit(f"until [ -e {done} ]; do sleep 0.1; done")
        await until_status(runs, "dispatched")
        stopping.terminate()
        await until_pool(crib, lambda pool: host_states(pool) == [("draining", True)])
        waits = await crib.submit("true")
        reason = (await waits.status()).pending_reason
        assert (reason and reason.code) == "offline"
        done.touch()
        assert (await until_status(runs, "done")).attempt == 1
        async with asyncio.timeout(30):
            assert await stopping.wait() == 0
    pool = await until_pool(crib, lambda pool: host_states(pool) == [("offline", True)])
    assert [one.reason for one in pool.devices] == ["its worker stopped"] * 2
    async with lab.host("b"):
        assert (await until_status(waits, "done")).attempt == 1


async def test_a_lease_that_reaches_a_worker_that_stops_is_returned(lab: Lab, tmp_path: Path) -> None:
    """A lease that is on its way when the worker begins to stop is given back unclaimed, and costs no attempt."""
    crib = await lab.pool()
    file = HostFile(id="a", devices=(slot(),), pool="lab", runners=RunnerNames(goal="shell"))
    guard = await Guard.start()
    locks, served = LockFolder(tmp_path / "locks"), ServedFencing(tmp_path / "served")
    (tmp_path / "locks").mkdir()
    runs = LeasedRuns(lab.client, "a", "lab", RunRecords(tmp_path / "runs"))
    work = HostWork(host_id="a", runs=runs, plugins=Brought())
    possessions, folders = Possessions(guard, locks, served), LeaseFolders(tmp_path, "a")
    key, drivers = await lab.enroll("a"), load_drivers(file)
    agent = HostAgent(lab.client, file, key, drivers, guard, possessions, folders, work)
    async with Worker(lab.client, task_queue=host_work_queue("a"), activities=[agent.presence.presence]):
        registering = asyncio.create_task(agent.stay_registered())
        await agent.registered.wait()
        task = await crib.submit("true", max_attempts=1)
        await until_status(task, "assigned")
        leaving = asyncio.create_task(agent.leave())
        await until_pool(crib, lambda pool: host_states(pool) == [("draining", True)])
        async with Worker(lab.client, task_queue=host_queue("a"), activities=[agent.runs.run_lease]):
            await leaving
        registering.cancel()
    await guard.close()
    view = await until_status(task, "queued")
    assert [(one.outcome, one.claimed_at) for one in view.attempts] == [("returned", None)]
    pool = await until_pool(crib, lambda pool: pool.leased == 0)
    assert [one.state for one in pool.devices] == ["offline"]

"""Cancelling at every stage and in every way: the client, `toolcrib cancel`, Temporal's own client and its own CLI."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from temporalio.client import WorkflowExecutionStatus

from support.guarded import alive
from support.lab import Lab, eventually, slot, until_pool, until_status
from support.processes import command, host_file, toolcrib
from toolcrib.client import TaskCancelled, TaskHandle, Toolcrib
from toolcrib.worker.embedded import EmbeddedServer
from toolcrib.worker.server_program import server_binary

WAYS: Final = ("client", "toolcrib", "handle", "temporal")
SLOTS: Final = [slot(way) for way in WAYS]


async def cancel(lab: Lab, server: EmbeddedServer, task: TaskHandle, way: str) -> None:
    """Cancel a task in one of the `WAYS`."""
    if way == "client":
        await lab.crib.task(task.id).cancel()
    elif way == "toolcrib":
        code, _ = await command(lab.client, lab.folder / "cancel", "cancel", task.id)
        assert code == 0
    elif way == "handle":
        await lab.client.get_workflow_handle(task.id).cancel()
    else:
        process = await asyncio.create_subprocess_exec(
            *(str(server_binary()), "workflow", "cancel", "--workflow-id", task.id),
            *("--address", server.address, "--namespace", lab.client.namespace),
            stdout=asyncio.subprocess.DEVNULL,
        )
        assert await process.wait() == 0


async def all_cancelled(lab: Lab, server: EmbeddedServer, crib: Toolcrib, tasks: Sequence[TaskHandle]) -> None:
    """Cancel each task in another way, and check that all that is left of them is that they were cancelled."""
    for task, way in zip(tasks, WAYS, strict=True):
        await cancel(lab, server, task, way)
        with pytest.raises(TaskCancelled):
            await task.result()
        assert (await task.status()).status == "cancelled"
    pool = await until_pool(crib, lambda pool: pool.leased == 0 == pool.queued)
    assert {device.state for device in pool.devices} <= {"idle"}


async def test_queued(lab: Lab, server: EmbeddedServer, tmp_path: Path) -> None:
    """The work never starts, not even when a device comes."""
    crib = await lab.pool()
    tasks = [await crib.submit(f"touch {tmp_path / way}") for way in WAYS]
    await all_cancelled(lab, server, crib, tasks)
    async with lab.host():
        await (await crib.submit("true")).result()
    assert not [way for way in WAYS if (tmp_path / way).exists()]


async def test_assigned(lab: Lab, server: EmbeddedServer) -> None:
    """While its host is away: the lease is revoked, and the device is free."""
    crib = await lab.pool()
    await lab.register_only(devices=SLOTS)
    tasks = [await crib.submit("true", device_id=way) for way in WAYS]
    for task in tasks:
        await until_status(task, "assigned")
    await all_cancelled(lab, server, crib, tasks)
    assert [[attempt.outcome for attempt in (await task.status()).attempts] for task in tasks] == [["cancelled"]] * 4


async def test_dispatched(lab: Lab, server: EmbeddedServer, tmp_path: Path) -> None:
    """Its processes end, and the device is free."""
    crib = await lab.pool()
    async with lab.host(devices=SLOTS):
        tasks = [await crib.submit(f"echo $$ >{tmp_path / way}; sleep 300", device_id=way) for way in WAYS]
        for way in WAYS:
            await eventually(partial(_pid, tmp_path / way), bool)
        await all_cancelled(lab, server, crib, tasks)
        assert not [way for way in WAYS if alive(await _pid(tmp_path / way))]


async def test_whoever_waits_hears_of_it_at_once(lab: Lab, tmp_path: Path) -> None:
    """Though its host is dead, and the workflow stays open until the lease has lapsed."""
    crib = await lab.pool(lease_ttl=60)
    file = host_file(tmp_path / "host", "a")
    submit = ("submit", "sleep 300", "--wait", "--pool", "lab")
    async with (
        toolcrib(lab.client, tmp_path / "host", "worker", "--role", "host", "--config", str(file)) as host,
        toolcrib(lab.client, tmp_path / "submit", *submit) as submitting,
    ):
        (view,) = await eventually(lambda: crib.tasks(status="dispatched"), bool)
        task = crib.task(view.id)
        host.kill()
        waits = [task.result(), crib.task(task.id).result(), _last(task), submitting.wait()]
        waiting = asyncio.gather(*waits, return_exceptions=True)
        await task.cancel()
        *results, watched, code = await asyncio.wait_for(waiting, 30)
    assert [type(result) for result in results] == [TaskCancelled, TaskCancelled]
    assert (watched, code) == ("cancelled", 6)
    found = await lab.client.get_workflow_handle(task.id).describe()
    assert found.status is WorkflowExecutionStatus.RUNNING
    assert [view.id for view in await crib.tasks(status="cancelled")] == [task.id]


async def _last(task: TaskHandle) -> str:
    return [view.status async for view in task.watch()][-1]


async def _pid(file: Path) -> int:
    return int(file.read_text()) if file.exists() and file.read_text().strip() else 0

"""How soon after a cancellation nothing is left: of the work, and of a lease whose host is dead."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import pytest

from support.guarded import alive
from support.lab import Lab, eventually, until_pool, until_status
from support.processes import host_file, toolcrib
from support.servers import connect
from toolcrib.client import Toolcrib
from toolcrib.worker import server_program
from toolcrib.worker.embedded import EmbeddedServer
from toolcrib.worker.scheduler_role import scheduler_role

ROOM: Final = 3.0
"""Seconds that a busy machine may add to each bound."""
COMMANDS: Final = ("frontend.WorkerCommandsEnabled", "system.enableCancelActivityWorkerCommand")


async def seconds_to_end(lab: Lab, folder: Path, ttl: float) -> float:
    """Cancel a task of whose processes none heeds SIGTERM and one has left its session; return when all are gone."""
    crib = await lab.pool(lease_ttl=ttl)
    deaf = "sh -c 'trap \"\" TERM; echo $$ >>pids; while :; do sleep 1; done'".replace("pids", str(folder / "pids"))
    async with lab.host():
        task = await crib.submit(f"trap '' TERM; {deaf} & setsid {deaf} & (setsid {deaf} &) ; sleep 300; sleep 300")
        pids = await eventually(lambda: _pids(folder), lambda pids: len(pids) == 3)
        begin = time.monotonic()
        await task.cancel()
        await eventually(lambda: _living(pids), lambda left: not left)
        took = time.monotonic() - begin
        pool = await until_pool(crib, lambda pool: pool.leased == 0)
    assert [device.state for device in pool.devices] == ["idle"]
    assert (await task.status()).status == "cancelled"
    return took


async def test_with_worker_commands_processes_are_gone_within_two_seconds(lab: Lab, tmp_path: Path) -> None:
    """The embedded server pushes the cancellation to the host: no renewal, every 12 s here, is waited for."""
    assert await seconds_to_end(lab, tmp_path, ttl=60) < 2 + ROOM


async def test_without_them_within_a_renewal_period_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server may not push: then the next renewal, every 3 s here, brings the cancellation."""
    for name in COMMANDS:
        monkeypatch.delitem(server_program.DYNAMIC_CONFIG, name)
    async with EmbeddedServer(port=0, headless=True) as server:
        client = await connect(server.address)
        async with scheduler_role(client):
            lab = Lab(client, Toolcrib(client), tmp_path / "hosts")
            assert await seconds_to_end(lab, tmp_path, ttl=15) < 3 + 2 + ROOM


async def test_a_dead_host_holds_a_cancelled_task_up_for_ttl_plus_5_seconds_at_most(lab: Lab, tmp_path: Path) -> None:
    """Then its workflow is closed and its device is nobody's; when the host is back the device serves again."""
    ttl = 5.0
    crib = await lab.pool(lease_ttl=ttl)
    file = host_file(tmp_path, "a")
    async with toolcrib(lab.client, tmp_path, "worker", "--role", "host", "--config", str(file)) as host:
        task = await crib.submit("sleep 300")
        await until_status(task, "dispatched")
        host.kill()
        begin = time.monotonic()
        await task.cancel()
        workflow = lab.client.get_workflow_handle(task.id)
        await eventually(workflow.describe, lambda found: found.close_time is not None)
        assert time.monotonic() - begin < ttl + 5 + ROOM
    found = await workflow.describe()
    assert found.status is not None
    assert found.status.name == "CANCELED"
    pool = await until_pool(crib, lambda pool: pool.leased == 0 and pool.hosts[0].state == "offline")
    assert [device.state for device in pool.devices] == ["resting"]
    async with toolcrib(lab.client, tmp_path, "worker", "--role", "host", "--config", str(file)):
        await until_status(await crib.submit("true"), "done")


async def _pids(folder: Path) -> list[int]:
    file = folder / "pids"
    return [int(pid) for pid in file.read_text().split()] if file.exists() else []


async def _living(pids: list[int]) -> list[int]:
    return [pid for pid in pids if alive(pid)]

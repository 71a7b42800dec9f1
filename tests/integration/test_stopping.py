"""How processes end when something stands in the way."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import psutil
import pytest

from support.lab import Lab, slot, until_pool
from support.processes import PROGRAM, host_file
from toolcrib.client import UnknownTask


async def start(folder: Path, *arguments: str, **environment: str) -> Process:
    """Run `toolcrib ARGUMENTS` with both of its streams in pipes."""
    inherited = {**os.environ, "TOOLCRIB_HOME": str(folder / "home"), "PYTHONPATH": os.pathsep.join(sys.path)}
    return await asyncio.create_subprocess_exec(
        *PROGRAM, *arguments, env=inherited | environment, stdin=asyncio.subprocess.DEVNULL, stdout=PIPE, stderr=PIPE
    )


async def test_a_worker_that_waits_for_its_server_can_be_stopped(tmp_path: Path) -> None:
    """One signal ends it in order, before there ever was a server."""
    worker = await start(tmp_path, "worker", "--role", "scheduler", "--address", "127.0.0.1:1")
    assert worker.stderr is not None
    assert b"waiting for it" in await worker.stderr.readline()
    worker.send_signal(signal.SIGINT)
    async with asyncio.timeout(15):
        assert await worker.wait() == 0


async def test_up_ends_when_its_server_has_ended(tmp_path: Path) -> None:
    """When Temporal's server is killed, `up` says so and ends with an error."""
    up = await start(tmp_path, "up", "--port", "0", "--ui-port", "0", "--data", str(tmp_path / "data"))
    assert up.stdout is not None
    assert (await up.stdout.readline()).startswith(b"ready ")
    servers = [child for child in psutil.Process(up.pid).children() if "start-dev" in child.cmdline()]
    servers[0].kill()
    async with asyncio.timeout(60):
        _, told = await up.communicate()
    assert up.returncode not in {0, None}
    assert b"the Temporal server has ended by itself" in told


async def test_a_home_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    """A host that could keep nothing does not start, and names the variable."""
    file = host_file(tmp_path, "h")
    worker = await start(tmp_path, "worker", "--role", "host", "--config", str(file), TOOLCRIB_HOME="/proc/nope")
    _, told = await worker.communicate()
    assert worker.returncode == 4
    assert [line.split()[0] for line in told.decode().splitlines()] == ["error:", "hint:"]
    assert b"TOOLCRIB_HOME: /proc/nope cannot be written to" in told


async def test_only_tasks_are_tasks(lab: Lab) -> None:
    """Pools and hosts are workflows, too, but no tasks: they have no status and are not cancelled as such."""
    crib = await lab.pool()
    for name in ("toolcrib-pool-lab", "", "\udcff"):
        for call in ("status", "cancel"):
            with pytest.raises(UnknownTask):
                await getattr(crib.task(name), call)()
    assert (await crib.pool().show()).name == "lab"


async def test_a_pool_is_not_cancelled(lab: Lab) -> None:
    """A pool that somebody cancels in the Web UI goes on: its tasks would wait for ever."""
    crib = await lab.pool()
    await lab.client.get_workflow_handle("toolcrib-pool-lab").cancel()
    async with lab.host(devices=[slot()]):
        await (await crib.submit("true")).result()
        await until_pool(crib, lambda pool: pool.leased == 0)


async def test_up_keeps_what_it_is_told(tmp_path: Path) -> None:
    """Where everything is stands in a file beside the data; on SIGTERM it ends in order."""
    up = await start(tmp_path, "up", "--port", "0", "--ui-port", "0", "--data", str(tmp_path / "data"))
    assert up.stdout is not None
    line = (await up.stdout.readline()).decode()
    found = json.loads((tmp_path / "data" / "toolcrib.json").read_text())
    assert line == f"ready address={found['address']} ui={found['ui']} pool={found['pool']} host={found['host']}\n"
    up.terminate()
    async with asyncio.timeout(60):
        await up.communicate()
    assert up.returncode == 0

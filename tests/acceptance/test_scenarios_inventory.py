"""Hosts and devices that are away, or only seem to be: rows S35 to S41 of failures that other schedulers had."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from support.lab import Lab, until_begun, until_pool, until_status
from support.processes import command, host_file, toolcrib
from support.servers import connect
from toolcrib.activities.pool_link import PoolLinks
from toolcrib.client import Toolcrib
from toolcrib.scheduling.messages import HostLeaves, HostSilent
from toolcrib.worker.embedded import EmbeddedServer

TTL = 3.0
QUICK: dict[str, Any] = {"claim_timeout": 20, "lease_ttl": TTL}


def worker(lab: Lab, folder: Path, host_id: str = "a") -> Any:
    """Run a host's worker as a process of its own."""
    return toolcrib(lab.client, folder, "worker", "--role", "host", "--config", str(host_file(folder, host_id)))


async def test_scenario_s35_devices_of_a_killed_host_are_not_picked(lab: Lab, tmp_path: Path) -> None:
    """Soon after its death they are offline; who wants one of them waits, and is told why, and others go elsewhere."""
    crib = await lab.pool(**QUICK)
    async with worker(lab, tmp_path) as dying:
        await until_begun(lab.client, "toolcrib-host-a")
        dying.kill()
        pool = await until_pool(crib, lambda pool: [device.state for device in pool.devices] == ["offline"])
    assert [host.state for host in pool.hosts] == ["offline"]
    here, anywhere = await crib.submit("true", host_id="a"), await crib.submit("true")
    reason = (await here.status()).pending_reason
    assert (reason and reason.code) == "offline"
    async with lab.host("b"):
        assert (await until_status(anywhere, "done")).host_id == "b"
    assert (await here.status()).attempts == []


async def test_scenario_s37_a_late_goodbye_brings_no_host_back(lab: Lab, tmp_path: Path) -> None:
    """A host that was revoked stays gone, whatever its worker says then; one that never was does not come to be."""
    crib = await lab.pool(**QUICK)
    async with worker(lab, tmp_path) as sleeper:
        await until_pool(crib, lambda pool: [host.state for host in pool.hosts] == ["online"])
        sleeper.send_signal(signal.SIGSTOP)
        assert (await command(lab.client, tmp_path / "cli", "host", "revoke", "a", "--pool", "lab"))[0] == 0
        task = await crib.submit("true")
        sleeper.send_signal(signal.SIGCONT)
        sleeper.terminate()
        async with asyncio.timeout(60):
            await sleeper.wait()
    link = PoolLinks(lab.client).to("lab")
    assert await link.leave(HostLeaves(host_id="ghost", incarnation=1)) == []
    await link.silence(HostSilent(host_id="ghost", incarnation=1, reason="goodbye"))
    pool = await crib.pool().show()
    assert {host.id: host.state for host in pool.hosts} == {"a": "offline"}
    assert [device.state for device in pool.devices] == ["offline"]
    assert (await task.status()).status == "queued"


async def test_scenario_s39_an_idle_host_that_is_well_stays(lab: Lab) -> None:
    """For three ttls without any work it is online and its device idle, all of the time; then it works."""
    crib = await lab.pool(**QUICK)
    async with lab.host():
        begun = time.monotonic()
        while time.monotonic() - begun < 3 * TTL:
            pool = await crib.pool().show()
            assert [host.state for host in pool.hosts] == ["online"]
            assert [device.state for device in pool.devices] == ["idle"]
            await asyncio.sleep(0.2)
        await (await crib.submit("true")).result()


async def test_scenario_s41_a_host_that_died_while_the_scheduler_was_away_is_noticed(
    server: EmbeddedServer, namespace: str, tmp_path: Path
) -> None:
    """The time after which a host counts as gone is the server's, and survives every process of ours."""
    client = await connect(server.address, namespace)
    crib = Toolcrib(client)
    scheduler = ("worker", "--role", "scheduler")
    file = host_file(tmp_path, "a", pool="default")
    async with toolcrib(client, tmp_path / "scheduler", *scheduler) as first, AsyncExitStack() as hosts:
        await until_pool(crib, lambda pool: not pool.hosts)
        await crib.pool().configure(lease_ttl=TTL)
        worker_of_a = toolcrib(client, tmp_path, "worker", "--role", "host", "--config", str(file))
        host = await hosts.enter_async_context(worker_of_a)
        await until_begun(client, "toolcrib-host-a")
        first.kill()
        await first.wait()
        host.kill()
        await host.wait()
    async with toolcrib(client, tmp_path / "scheduler", *scheduler):
        pool = await until_pool(crib, lambda pool: [one.state for one in pool.hosts] == ["offline"])
    assert [device.state for device in pool.devices] == ["offline"]

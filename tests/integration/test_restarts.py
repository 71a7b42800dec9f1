"""Server, scheduler and host go away and come back in the middle of queued and running tasks: all of them still end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from support.lab import slot, until_pool, until_status
from support.processes import host_file, toolcrib
from support.servers import connect
from toolcrib.client import TaskHandle, TaskRequest, Toolcrib
from toolcrib.worker.embedded import EmbeddedServer

DEVICES = [slot("a"), slot("b")]
WITHIN = 120.0


async def submit_some(crib: Toolcrib) -> list[TaskHandle]:
    """Submit more tasks than there are devices, and return when some run and others wait."""
    tasks = await crib.submit_many([TaskRequest(goal="sleep 1; echo done", max_attempts=5)] * 8)
    await until_status(tasks[0], "dispatched")
    return tasks


async def all_done(tasks: list[TaskHandle]) -> None:
    """Wait until all tasks have ended as done."""
    async with asyncio.timeout(WITHIN):
        results = await asyncio.gather(*(task.result() for task in tasks))
    assert [result["output"] for result in results] == ["done\n"] * len(tasks)


async def test_the_server_is_killed_and_started_again(
    server_with_file: Callable[..., EmbeddedServer], tmp_path: Path
) -> None:
    """A server that is killed loses nothing that it had said it has."""
    async with AsyncExitStack() as parts:
        server = server_with_file()
        running = await parts.enter_async_context(AsyncExitStack())
        await running.enter_async_context(server)
        client = await connect(server.address)
        crib = Toolcrib(client)
        file = host_file(tmp_path, "h", DEVICES, pool="default")
        await parts.enter_async_context(toolcrib(client, tmp_path, "worker", "--role", "all", "--config", str(file)))
        await until_pool(crib, lambda pool: len(pool.devices) == 2)
        tasks = await submit_some(crib)
        await server.kill()
        await running.aclose()
        async with server_with_file(port=server.port):
            await all_done(tasks)
            await until_pool(crib, lambda pool: pool.leased == 0 and pool.queued == 0)


async def test_a_scheduler_is_killed_and_started_again(server: EmbeddedServer, namespace: str, tmp_path: Path) -> None:
    """Running work goes on without a scheduler, and its results wait for the next one."""
    client = await connect(server.address, namespace)
    crib = Toolcrib(client)
    file = host_file(tmp_path, "h", DEVICES, pool="default")
    async with toolcrib(client, tmp_path, "worker", "--role", "host", "--config", str(file)):
        async with toolcrib(client, tmp_path, "worker", "--role", "scheduler") as scheduler:
            await until_pool(crib, lambda pool: len(pool.devices) == 2)
            tasks = await submit_some(crib)
            scheduler.kill()
        async with toolcrib(client, tmp_path, "worker", "--role", "scheduler"):
            await all_done(tasks)
            await until_pool(crib, lambda pool: pool.leased == 0 and pool.queued == 0)


async def test_a_host_is_killed_and_started_again(server: EmbeddedServer, namespace: str, tmp_path: Path) -> None:
    """What ran on a host that was killed runs again when it is back; what waited waits on; logs can be had at once."""
    client = await connect(server.address, namespace)
    crib = Toolcrib(client)
    file = host_file(tmp_path, "h", DEVICES, pool="default")
    async with toolcrib(client, tmp_path, "worker", "--role", "scheduler"):
        await until_pool(crib, lambda pool: pool.name == "default")
        await crib.pool().configure(lease_ttl=4, claim_timeout=10)
        async with toolcrib(client, tmp_path, "worker", "--role", "host", "--config", str(file)) as host:
            await until_pool(crib, lambda pool: len(pool.devices) == 2)
            done = await crib.submit("echo done")
            await done.result()
            tasks = await submit_some(crib)
            assert [piece async for piece in done.logs()] == [b"done\n"]
            host.kill()
        async with toolcrib(client, tmp_path, "worker", "--role", "host", "--config", str(file)):
            await until_pool(crib, lambda pool: pool.hosts[0].incarnation == 2)
            assert [piece async for piece in done.logs()] == [b"done\n"]
            await all_done(tasks)
            pool = await until_pool(crib, lambda pool: pool.leased == 0 and pool.queued == 0)
            first = await tasks[0].status()
    assert [attempt.outcome for attempt in first.attempts] == ["expired", "done"]
    assert [host.incarnation for host in pool.hosts] == [2]


async def test_a_host_that_is_asked_to_stop_gives_its_work_back(
    server: EmbeddedServer, namespace: str, tmp_path: Path
) -> None:
    """On SIGTERM a host lets work finish for its drain timeout; then it returns the rest, which is not counted."""
    client = await connect(server.address, namespace)
    crib = Toolcrib(client)
    file = host_file(tmp_path, "h", DEVICES, pool="default", drain="2s")
    async with toolcrib(client, tmp_path, "worker", "--role", "scheduler"):
        await until_pool(crib, lambda pool: pool.name == "default")
        async with toolcrib(client, tmp_path, "worker", "--role", "host", "--config", str(file)) as host:
            await until_pool(crib, lambda pool: len(pool.devices) == 2)
            short, long = await crib.submit("sleep 1"), await crib.submit("sleep 60", max_attempts=1)
            await until_status(short, "dispatched")
            await until_status(long, "dispatched")
            host.terminate()
            assert await host.wait() == 0
        await until_status(short, "done")
        view = await until_status(long, "queued")
        assert [attempt.outcome for attempt in view.attempts] == ["returned"]
        pool = await until_pool(crib, lambda pool: pool.leased == 0)
        assert {device.state for device in pool.devices} == {"offline"}

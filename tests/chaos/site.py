"""The site that is put to the test: server, schedulers, and hosts that reach the server through a proxy each."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from temporalio.client import Client

from chaos.proxy import Proxy
from chaos.service import Server, Service
from support.lab import slot
from support.processes import host_file
from support.servers import connect
from toolcrib.activities.host_keys import create_key
from toolcrib.client import Toolcrib
from toolcrib.scheduling.errors import NoConnection, UnknownPool

POOL: Final[dict[str, Any]] = {"lease_ttl": 8, "claim_timeout": 10, "max_concurrent": None, "max_attempts": 100}
"""A ttl that a loaded machine keeps, and more attempts than faults."""
SCHEDULERS: Final = 2
READY_WITHIN: Final = 60.0
"""Seconds until all hosts have registered for the first time."""
LOOK_PAUSE: Final = 0.2

Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class HostSite:
    """One host: its worker and its connection."""

    id: str
    worker: Service
    proxy: Proxy
    devices: tuple[str, ...]
    """Keys."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """All of it, running."""

    folder: Path
    server: Server
    client: Client
    crib: Toolcrib
    schedulers: tuple[Service, ...]
    hosts: tuple[HostSite, ...]

    @property
    def devices(self) -> tuple[str, ...]:
        """The keys of all devices."""
        return tuple(device for host in self.hosts for device in host.devices)

    @property
    def work_log(self) -> Path:
        """What works write."""
        return self.folder / "works.log"

    async def heal(self) -> None:
        """End every fault that may still last; the server's is for its own fault to end."""
        for host in self.hosts:
            host.worker.send(signal.SIGCONT)
            await host.proxy.heal()


@asynccontextmanager
async def running_site(folder: Path, *, hosts: int, slots: int) -> AsyncIterator[Site]:
    """Start everything, and yield it when all devices are there."""
    async with AsyncExitStack() as parts:
        server = await parts.enter_async_context(Server(folder))
        keep = await parts.enter_async_context(_keeper())
        schedulers = tuple(_scheduler(folder, number, server) for number in range(1, SCHEDULERS + 1))
        keep(*schedulers)
        client = await connect(server.address)
        crib = Toolcrib(client)
        await _answered(lambda: crib.pool().configure(**POOL))
        proxies = [await parts.enter_async_context(Proxy(server.port)) for _ in range(hosts)]
        workers = [await _host(crib, folder, f"host-{n}", slots, proxy) for n, proxy in enumerate(proxies, 1)]
        keep(*(host.worker for host in workers))
        site = Site(folder=folder, server=server, client=client, crib=crib, schedulers=schedulers, hosts=tuple(workers))
        await _all_there(site)
        yield site


async def prepare_host(crib: Toolcrib, folder: Path, host_id: str, slots: int) -> Path:
    """Do what an operator does before a host may serve, and return its host file."""
    await crib.pool().enroll_host(host_id, create_key(folder / "home", host_id).public)
    return host_file(folder, host_id, [slot(f"slot-{number}") for number in range(1, slots + 1)], pool="default")


@asynccontextmanager
async def _keeper() -> AsyncIterator[Callable[..., None]]:
    """Yield a function that keeps services running until the end of the block."""
    tasks: list[asyncio.Task[None]] = []
    try:
        yield lambda *services: tasks.extend(asyncio.create_task(service.keep()) for service in services)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _scheduler(folder: Path, number: int, server: Server) -> Service:
    arguments = ["worker", "--role", "scheduler"]
    return Service(folder, f"scheduler-{number}", arguments, _environment(folder, server.port))


async def _host(crib: Toolcrib, folder: Path, host_id: str, slots: int, proxy: Proxy) -> HostSite:
    file = await prepare_host(crib, folder, host_id, slots)
    arguments = ["worker", "--role", "host", "--config", str(file)]
    return HostSite(
        id=host_id,
        worker=Service(folder, host_id, arguments, _environment(folder, proxy.port)),
        proxy=proxy,
        devices=tuple(f"{host_id}/slot-{number}" for number in range(1, slots + 1)),
    )


def _environment(folder: Path, port: int) -> Mapping[str, str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "TOOLCRIB_"))}
    return {
        **known,
        "TEMPORAL_ADDRESS": f"127.0.0.1:{port}",
        "TOOLCRIB_HOME": str(folder / "home"),
        "TOOLCRIB_LOCKS": str(folder / "locks"),
        "TOOLCRIB_LOG_FORMAT": "keyvalue",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


async def _answered(call: Callable[[], Awaitable[Answer]]) -> Answer:
    """Return what `call` returns, making it again until the pool is there."""
    async with asyncio.timeout(READY_WITHIN):
        while True:
            with suppress(UnknownPool, NoConnection):
                return await call()
            await asyncio.sleep(LOOK_PAUSE)


async def _all_there(site: Site) -> None:
    async with asyncio.timeout(READY_WITHIN):
        while len(await site.crib.pool().devices()) < len(site.devices):
            await asyncio.sleep(LOOK_PAUSE)

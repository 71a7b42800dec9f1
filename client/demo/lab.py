"""The demo's processes: Temporal's server, a scheduler, and two hosts."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolcrib.activities.host_keys import create_key
from toolcrib.activities.pools import ensure_pool
from toolcrib.client.crib import Toolcrib
from toolcrib.client.demo.jobs import HOSTS, POOL
from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.errors import ToolcribError
from toolcrib.worker.connection import connect_to
from toolcrib.worker.embedded import EmbeddedServer
from toolcrib.worker.target import plain_target

READY_TIMEOUT: Final = 60.0
STOP_TIMEOUT: Final = 15.0
_PROGRAM: Final = (sys.executable, "-c", "from toolcrib.client.cli import main; main()")


@dataclass(frozen=True)
class Lab:
    """A running lab, and the means to add to it."""

    crib: Toolcrib
    ui: str
    home: Path
    log: Path
    environment: Mapping[str, str]
    parts: AsyncExitStack

    async def start(self, *command: str, cwd: Path | None = None, stdout: int | None = None) -> Process:
        """Start a process that is ended with the lab; what it says is logged, unless `stdout` takes it."""
        with self.log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=cwd,
                env=self.environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output if stdout is None else stdout,
                stderr=output,
                start_new_session=True,
            )
        self.parts.push_async_callback(_stop, process)
        return process

    async def start_worker(self, *options: str, cwd: Path | None = None) -> Process:
        """Start `toolcrib worker` with these options."""
        return await self.start(*_PROGRAM, "worker", *options, cwd=cwd)


@asynccontextmanager
async def lab() -> AsyncIterator[Lab]:
    """Start everything on free ports, with everything in memory; nothing is left when the context closes.

    Raises:
        ToolcribError: something does not start; the message has its last words.
    """
    async with AsyncExitStack() as parts:
        folder = Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="toolcrib-demo-")))
        server = await parts.enter_async_context(EmbeddedServer(port=0, ui_port=0))
        client = await connect_to(plain_target(server.address))
        environment = _environment(folder, server.address)
        crib = Toolcrib(client, pool=POOL)
        found = Lab(crib, server.ui_url, folder / "home", folder / "log", environment, parts)
        await ensure_pool(client, POOL, PoolConfig(max_concurrent=None))
        processes = [await found.start_worker("--role", "scheduler")]
        for host in HOSTS:
            await crib.pool().enroll_host(host, create_key(found.home, host).public)
            config = folder / f"{host}.yaml"
            config.write_text(_host_file(host), encoding="utf-8")
            processes.append(await found.start_worker("--role", "host", "--config", str(config)))
        await _until_ready(found, processes)
        yield found


def _environment(folder: Path, address: str) -> dict[str, str]:
    """Return the processes' environment: settings for other servers do not apply to this one."""
    profiles = folder / "no-profiles.toml"
    profiles.touch()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "TOOLCRIB_"))}
    return inherited | {
        "TEMPORAL_ADDRESS": address,
        "TEMPORAL_CONFIG_FILE": str(profiles),
        "TOOLCRIB_HOME": str(folder / "home"),
        "TOOLCRIB_LOCKS": str(folder / "locks"),
    }


def _host_file(host: str) -> str:
    devices = "".join(
        f"    - {{id: {device}, driver: local, tags: [{', '.join(tags)}]}}\n" for device, tags in HOSTS[host]
    )
    return (
        f"host:\n  id: {host}\n  pool: {POOL}\n  drain_timeout: 5s\n  devices:\n{devices}  runners: {{goal: shell}}\n"
    )


async def _stop(process: Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(STOP_TIMEOUT):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def _until_ready(found: Lab, processes: list[Process]) -> None:
    """Wait until both hosts are in the pool."""
    try:
        async with asyncio.timeout(READY_TIMEOUT):
            while sum(host.state == "online" for host in await found.crib.pool().hosts()) < len(HOSTS):
                if any(process.returncode is not None for process in processes):
                    raise _not_started(found.log)
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise _not_started(found.log) from None


def _not_started(log: Path) -> ToolcribError:
    last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:]
    return ToolcribError("the demo's processes did not start: " + " / ".join(last), hint="See: toolcrib doctor")

"""toolcrib's processes as people run them: the real command, in processes that tests may kill."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from temporalio.client import Client

from support.lab import PATIENCE, eventually, slot
from toolcrib.activities.host_keys import load_or_create_key
from toolcrib.activities.pool_link import PoolLinks
from toolcrib.client import UnknownPool
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.messages import HostKey
from toolcrib.worker.host_file import load_host_file

PROGRAM = (sys.executable, "-c", "from toolcrib.client.cli import main; main()")


def host_file(
    folder: Path,
    host_id: str,
    devices: Sequence[DeviceSpec] = (slot(),),
    *,
    pool: str = "lab",
    drain: str = "5s",
    runners: str = "goal: shell",
) -> Path:
    """Write a host file for slots that run goals by `shell`, or whatever has the `runners` named."""
    lines = [
        f'    - {{id: {one.id}, driver: "{one.driver}", driver_type: {one.driver_type}, tags: [{", ".join(one.tags)}]}}'
        for one in devices
    ]
    file = folder / f"{host_id}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f"host:\n  id: {host_id}\n  pool: {pool}\n  drain_timeout: {drain}\n  runners: {{{runners}}}\n"
        f"  devices:\n" + "\n".join(lines),
        encoding="utf-8",
    )
    return file


@asynccontextmanager
async def toolcrib(client: Client, folder: Path, *arguments: str, cwd: Path | None = None) -> AsyncIterator[Process]:
    """Run `toolcrib ARGUMENTS` against the client's server and namespace; it is ended with the context.

    The host of a worker is enrolled as soon as its pool is there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "TEMPORAL_ADDRESS": client.service_client.config.target_host,
        "TEMPORAL_NAMESPACE": client.namespace,
        "TOOLCRIB_HOME": str(folder / "home"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    with (folder / "log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *PROGRAM, *arguments, env=environment, cwd=cwd, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
        )
    enrolling = asyncio.create_task(_enroll(client, folder, arguments))
    try:
        yield process
    finally:
        enrolling.cancel()
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        await process.wait()


async def _enroll(client: Client, folder: Path, arguments: Sequence[str]) -> None:
    if "--config" not in arguments:
        return
    host = load_host_file(Path(arguments[arguments.index("--config") + 1]))
    order = HostKey(host_id=host.id, public_key=load_or_create_key(folder / "home", host.id).public)

    async def enrolled() -> bool:
        try:
            await PoolLinks(client).to(host.pool).enroll(order)
        except UnknownPool:
            return False
        return True

    await eventually(enrolled, bool)


async def stopped(process: Process) -> int:
    """Ask a process to stop, as its service manager would, and return its exit code."""
    process.terminate()
    async with asyncio.timeout(PATIENCE):
        return await process.wait()


async def command(client: Client, folder: Path, *words: str) -> tuple[int, str]:
    """Run a `toolcrib` command to its end, and return its exit code and all that it wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log"
    log.write_bytes(b"")
    async with toolcrib(client, folder, *words) as process, asyncio.timeout(2 * PATIENCE):
        code = await process.wait()
    return code, without_waiting(log.read_text())


def without_waiting(written: str) -> str:
    """Return what a command wrote without the lines that say, on a busy machine, whom it waits for."""
    return re.sub(r"^waiting for (the Temporal server|a scheduler) to answer\n", "", written, flags=re.MULTILINE)

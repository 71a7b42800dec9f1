"""Leases for tests, as a host would have them, without a server."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from toolcrib.activities.attempt_log import AttemptLog
from toolcrib.activities.context import LeaseContext
from toolcrib.activities.guard import Guard
from toolcrib.activities.progress import ProgressReporter
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.keeping import LOG_LIMIT
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import Progress

SLOT: Final = DeviceSpec(id="slot-1", driver="local", driver_type="local")
HOST_ID: Final = "lab-1"
TIME_LIMIT: Final = 3_600.0

Result = TypeVar("Result")


@asynccontextmanager
async def leased(device: DeviceSpec = SLOT) -> AsyncIterator[LeaseContext]:
    """Have a lease of a device, with folders of its own and a real guard; all that it has started ends with the block.

    What was reported of progress is in `context.reporter.newest`.
    """
    with tempfile.TemporaryDirectory(prefix="toolcrib-") as folder:
        guard = await Guard.start()
        try:
            yield _context(guard, device, Path(folder), 1)
        finally:
            await guard.close()


def another(context: LeaseContext, number: int) -> LeaseContext:
    """Return a further lease of the same device under the same guard, the `number`-th."""
    folder = context.folder.parent.parent
    return _context(context.guard, context.device, folder, number)


def run(test: Coroutine[Any, Any, Result]) -> Result:
    """Run a test in an event loop of its own, and leave that of the thread alone, which a plugin may use."""
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(test)


def children() -> set[int]:
    """Return the living processes that this process has started.

    Not from /proc/self/task/*/children: what a thread has started is in none of them while that thread ends.
    """
    found = set()
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = file.read_text(errors="replace").rpartition(")")[2].split()[:2]
        except OSError:  # it has ended
            continue
        if int(parent) == os.getpid() and state != "Z":
            found.add(int(file.parent.name))
    return found


def _context(guard: Any, device: DeviceSpec, folder: Path, number: int) -> LeaseContext:
    lease = Lease(
        task_id=f"task-{number}",
        attempt=1,
        host_id=HOST_ID,
        device_id=device.id,
        fencing=number,
        assigned_at=time.time(),
        claim_by=time.time() + TIME_LIMIT,
        ttl=TIME_LIMIT,
    )
    work, artifacts = folder / lease.id / "work", folder / lease.id / "artifacts"
    work.mkdir(parents=True)
    artifacts.mkdir()
    environment = {
        "TOOLCRIB_TASK_ID": lease.task_id,
        "TOOLCRIB_LEASE_ID": lease.id,
        "TOOLCRIB_FENCING": str(lease.fencing),
        "TOOLCRIB_ATTEMPT": "1",
        "TOOLCRIB_DEVICE_ID": lease.device_id,
        "TOOLCRIB_HOST_ID": lease.host_id,
        "TOOLCRIB_ARTIFACTS": str(artifacts),
    }
    return LeaseContext(
        lease=lease,
        device=replace(device),
        guard=guard,
        reporter=ProgressReporter(lease.id, _tell_nobody),
        folder=work,
        artifacts=artifacts,
        log=AttemptLog(folder / lease.id / "log", LOG_LIMIT),
        deadline=time.time() + TIME_LIMIT,
        environment={**os.environ, **environment},
    )


async def _tell_nobody(report: Progress) -> None:
    """Take a report of progress with which nothing is done."""

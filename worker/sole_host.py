"""One worker a host on one machine, and nothing left of the one before."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import structlog

from toolcrib.activities.lease_folders import LeaseFolders
from toolcrib.activities.leftovers import HOST, LOCKS, end_leftovers
from toolcrib.activities.locks import HeldLock, Holder, LockFolder
from toolcrib.scheduling.errors import InvalidRequest, ToolcribError

DYING: Final = 10.0
"""Seconds to wait for the lock of a holder that is dead or unknown: it, or a child of it, is about to end."""
PAUSE: Final = 0.05

_log = structlog.get_logger(__name__)


class HostRunsAlready(ToolcribError):
    """Another process of this machine is the host's worker."""

    code = "host_runs_already"
    exit_code = 4
    default_hint = (
        "Stop that one first, or give this one another id: host.id in its file, --host-id, or in Python host_id=..."
    )


@asynccontextmanager
async def sole_host(host_id: str, locks: LockFolder, folders: LeaseFolders) -> AsyncIterator[None]:
    """Be the host's only worker on this machine; first, end what an earlier one has left running.

    Raises:
        HostRunsAlready: another process is.
        InvalidRequest: the folder of the locks cannot be used.
        NotKilled: processes of an earlier life do not end.
    """
    lock = await _taken(host_id, locks)
    # The lock ends with this process, and not with what code of others forks off it.
    os.register_at_fork(after_in_child=lock.close)
    try:
        killed = await end_leftovers({HOST: host_id, LOCKS: str(locks.path)})
        for pid, lease in killed.items():
            _log.warning("ended a process of an earlier life of this host", pid=pid, lease=lease)
        await folders.clear()
        yield
    finally:
        lock.release(clean=True)


async def _taken(host_id: str, locks: LockFolder) -> HeldLock:
    name, end = f"host-{host_id}", time.monotonic() + DYING
    try:
        while (lock := locks.try_take(name)) is None:
            holder = locks.holder(name)
            if holder is not None and holder.alive:
                raise HostRunsAlready(f"host {host_id} runs already on this machine: process {holder.pid}")
            if time.monotonic() > end:
                raise HostRunsAlready(f"host {host_id} runs already on this machine: a process that left no name")
            await asyncio.sleep(PAUSE)
        lock.sign(Holder.this_process(host_id))
    except OSError as error:
        raise InvalidRequest(
            f"the folder of the device locks cannot be used: {error}",
            hint=f"Let all users write to it, once, as root: install -d -m 1777 {locks.path}",
        ) from None
    return lock

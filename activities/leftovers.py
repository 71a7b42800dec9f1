"""Finds what an earlier life left running, by the environment that works carry, and ends it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from toolcrib.activities.guard import NotKilled

PATIENCE: Final = 10.0
"""Seconds that the kernel gets to end what was killed."""
PAUSE: Final = 0.02

LEASE: Final = "TOOLCRIB_LEASE_ID"
HOST: Final = "TOOLCRIB_HOST_ID"
LOCKS: Final = "TOOLCRIB_LOCKS"
"""Of two hosts of one id with different lock folders neither is an earlier life of the other."""


async def end_leftovers(marks: Mapping[str, str]) -> dict[int, str]:
    """Kill all works whose environment holds `marks`, and return when they are gone: lease ids by process id.

    Raises:
        NotKilled: some do not end.
    """
    killed: dict[int, str] = {}
    end = time.monotonic() + PATIENCE
    while found := await asyncio.to_thread(_find, marks):
        killed |= found
        for pid in found:
            _kill(pid)
        if time.monotonic() > end:
            raise NotKilled(f"processes of an earlier life do not end: {', '.join(map(str, found))}")
        await asyncio.sleep(PAUSE)
    return killed


def _find(marks: Mapping[str, str]) -> dict[int, str]:
    wanted = {f"{name}={value}".encode() for name, value in marks.items()}
    found: dict[int, str] = {}
    spared = _lineage()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) not in spared:
            environment = _environment(entry.path)
            lease = next((one for one in environment if one.startswith(f"{LEASE}=".encode())), None)
            if lease is not None and wanted.issubset(environment):
                found[int(entry.name)] = lease.partition(b"=")[2].decode(errors="replace")
    return found


def _environment(process: str) -> list[bytes]:
    """Return the variables of a process; none if it is gone, a zombie or not ours to look at."""
    try:
        return Path(process, "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _lineage() -> set[int]:
    """Return this process and those above it: a worker that was started by a work is no leftover of itself."""
    lineage, pid = set[int](), os.getpid()
    while pid > 0 and pid not in lineage:
        lineage.add(pid)
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        except OSError:
            break
    return lineage


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return

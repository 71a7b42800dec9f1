"""Runs commands under a real guard, and looks at what is left of them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from toolcrib.activities.guard import Guard, Work

MARK = "GUARDED_BY_TEST"


class Lab:
    """A guard, and commands that carry a mark of their own in their environment."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self.mark = uuid4().hex

    async def start(self, *argv: str, lease: str = "lease", deadline: float | None = None) -> Work:
        """Start a command without input whose output goes nowhere."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        try:
            return await self.guard.spawn(
                lease,
                argv,
                env={**os.environ, MARK: self.mark},
                cwd=Path("/"),
                stdin=nowhere,
                stdout=nowhere,
                stderr=nowhere,
                deadline=deadline,
            )
        finally:
            os.close(nowhere)

    async def script(self, text: str, *, ups: int = 1, lease: str = "lease", deadline: float | None = None) -> Work:
        """Start a shell script, and return once it has said `up` on fd 3, `ups` times."""
        read, write = os.pipe()
        opening = f"exec 3>/proc/{os.getpid()}/fd/{write}\n"
        work = await self.start("/bin/sh", "-c", opening + text, lease=lease, deadline=deadline)
        with os.fdopen(read, encoding="ascii") as said:
            for _ in range(ups):
                assert await asyncio.to_thread(said.readline) == "up\n"
        os.close(write)
        return work

    def left(self) -> list[int]:
        """Return the living processes that carry the mark."""
        return marked(self.mark)


def marked(mark: str) -> list[int]:
    """Return the living processes whose environment holds `mark`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if f"{MARK}={mark}\0".encode() in environment:
            found.append(int(folder.name))
    return found


def alive(pid: int) -> bool:
    """Return whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children(pid: int) -> list[int]:
    """Return the children of a process with one thread, zombies as well."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def open_files(pid: int) -> int:
    """Return how many file descriptors a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


async def until(condition: Callable[[], bool], within: float = 10.0) -> None:
    """Return once `condition` holds; fail if it does not `within` so many seconds."""
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, "still not so"
        await asyncio.sleep(0.01)


def noting_spawns(guard: Guard, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Return what is set once something was spawned, and whoever had it spawned has been told."""
    spawn, spawned = guard.spawn, asyncio.Event()

    async def watched(*args: Any, **options: Any) -> Work:
        work = await spawn(*args, **options)
        spawned.set()
        return work

    monkeypatch.setattr(guard, "spawn", watched)
    return spawned


@asynccontextmanager
async def running_lab() -> AsyncIterator[Lab]:
    """Have a guard for the length of a block."""
    guard = await Guard.start()
    try:
        yield Lab(guard)
    finally:
        await guard.close()

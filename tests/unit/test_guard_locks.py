"""A device's lock is kept by guard and keeper, until nothing is left of the work, whoever dies."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from support.guarded import Lab, alive, children, marked, open_files, running_lab, until
from toolcrib.activities.guard import GuardLost, Work
from toolcrib.activities.locks import LockFolder

STUBBORN = """trap '' TERM; setsid sh -c 'trap "" TERM; echo up >&3; sleep 300' & echo up >&3; wait; sleep 300"""


class Device:
    """A device whose lock is with the guard's works, and no longer with the test."""

    def __init__(self, lab: Lab, locks: LockFolder) -> None:
        self._lab = lab
        self._locks = locks

    @property
    def free(self) -> bool:
        """Whether the lock can be had. Nothing may be left of the work then."""
        lock = self._locks.try_take("device")
        if lock is None:
            return False
        assert self._lab.left() == []
        lock.close()
        return True


@asynccontextmanager
async def device_in_use(folder: Path, script: str, ups: int) -> AsyncIterator[tuple[Lab, Work, Device]]:
    """Start a work whose device is kept by guard and keeper alone."""
    locks = LockFolder(folder)
    async with running_lab() as lab:
        lock = locks.try_take("device")
        assert lock is not None
        lab.guard.hold("lease", lock.fds)
        work = await lab.script(script, ups=ups)
        lock.close()
        lab.guard.forget("lease")
        device = Device(lab, locks)
        assert not device.free
        yield lab, work, device


async def test_a_device_is_free_when_its_work_has_ended(tmp_path: Path) -> None:
    """With the end of its whole tree the device is free."""
    async with device_in_use(tmp_path, STUBBORN, 2) as (_, work, device):
        await work.kill(grace=0)
        await until(lambda: device.free)


async def test_a_killed_keeper_frees_no_device(tmp_path: Path) -> None:
    """When a keeper is killed the guard keeps the device until the tree is gone; who hears of it finds it free."""
    async with device_in_use(tmp_path, STUBBORN, 2) as (lab, work, device):
        (keeper,) = children(lab.guard.pid)
        os.kill(keeper, signal.SIGKILL)
        await until(lambda: device.free)
        with pytest.raises(GuardLost):
            await work.wait()


async def test_a_killed_guard_frees_no_device(tmp_path: Path) -> None:
    """When the guard is killed each keeper keeps its device until the tree is gone."""
    async with device_in_use(tmp_path, STUBBORN, 2) as (lab, work, device):
        os.kill(lab.guard.pid, signal.SIGKILL)
        await until(lambda: device.free)
        with pytest.raises(GuardLost):
            await work.wait()


async def test_a_work_does_not_inherit_its_lock(tmp_path: Path) -> None:
    """The work itself has no part in the lock: what it leaves with strangers keeps no device."""
    async with device_in_use(tmp_path, "echo up >&3; exec sleep 300", 1) as (_, work, _):
        open_in_work = [str(fd.readlink()) for fd in Path(f"/proc/{work.pid}/fd").iterdir()]
        assert len(open_in_work) > 3
        assert not [target for target in open_in_work if "socket:" in target or str(tmp_path) in target]


async def test_locks_do_not_accumulate_in_the_guard(tmp_path: Path) -> None:
    """After works with locks the guard has as many open files as before."""
    locks = LockFolder(tmp_path)
    async with running_lab() as lab:
        await (await lab.start("true")).wait()
        await until(lambda: not children(lab.guard.pid))
        before = open_files(lab.guard.pid)
        for _ in range(10):
            lock = await locks.take("device", patience=10)
            assert lock is not None
            lab.guard.hold("lease", lock.fds)
            works = [await lab.start("true") for _ in range(3)]
            await asyncio.gather(*(work.wait() for work in works))
            lock.release(clean=True)
        await until(lambda: not children(lab.guard.pid))
        assert open_files(lab.guard.pid) <= before


WORKER = """
import asyncio, os, pathlib, signal, sys
from toolcrib.activities.guard import Guard, GuardLost, become_subreaper

def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

async def main():
    become_subreaper()
    own = await asyncio.create_subprocess_exec("sleep", "300")
    guard = await Guard.start()
    read, write = os.pipe()
    env = {**os.environ, "GUARDED_BY_TEST": sys.argv[1]}
    works = [
        await guard.spawn(
            "lease", ["sh", "-c", sys.argv[2]], env=env, cwd=pathlib.Path("/"), stdin=read, stdout=write, stderr=2
        )
        for _ in range(2)
    ]
    with os.fdopen(read) as said:
        for _ in range(4):
            assert said.readline() == "up\\n"
    for pid in (guard.pid, *children(guard.pid)):
        os.kill(pid, signal.SIGSTOP)
    for pid in (*children(guard.pid), guard.pid):
        os.kill(pid, signal.SIGKILL)
    for work in works:
        try:
            await work.wait()
        except GuardLost:
            print("lost", flush=True)
    await guard.close()
    print("spared" if own.returncode is None else "killed", len(children(os.getpid())), flush=True)
    sys.stdin.read()
    own.kill()

asyncio.run(main())
"""


async def test_a_worker_ends_what_guard_and_keepers_leave_to_it() -> None:
    """When guard and keepers die at once, GuardLost still means that nothing is left; the worker's own are spared."""
    mark = uuid4().hex
    script = STUBBORN.replace("sleep 300'", "exec sleep 300'").replace(">&3", "")
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WORKER, mark, script), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert worker.stdout
    try:
        assert await worker.stdout.readline() == b"lost\n"
        assert marked(mark) == []
        assert await worker.stdout.readline() == b"lost\n"
        assert await worker.stdout.readline() == b"spared 1\n"
        assert alive(worker.pid)
    finally:
        await worker.communicate(b"")

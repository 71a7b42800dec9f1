"""A host has one worker on a machine, which finds nothing left of the one before."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from uuid import uuid4

import pytest

from support.guarded import MARK, marked
from toolcrib.activities.lease_folders import LeaseFolders
from toolcrib.activities.leftovers import HOST, LEASE, LOCKS
from toolcrib.activities.locks import Holder, LockFolder
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.worker import sole_host as sole
from toolcrib.worker.sole_host import HostRunsAlready, sole_host

WORKER = """
import asyncio, os, sys, time
from pathlib import Path
from toolcrib.activities.lease_folders import LeaseFolders
from toolcrib.activities.locks import LockFolder
from toolcrib.worker.sole_host import sole_host

async def main():
    folder = Path(sys.argv[1])
    async with sole_host("h", LockFolder(folder / "locks"), LeaseFolders(folder / "home", "h")):
        if not os.fork():
            os.write(1, b"child\\n")
            time.sleep(300)
        os.write(1, b"up\\n")
        sys.stdin.read()

asyncio.run(main())
"""


def be_host(folder: Path, host_id: str = "h") -> AbstractAsyncContextManager[None]:
    """Be the worker of a host."""
    return sole_host(host_id, LockFolder(folder / "locks"), LeaseFolders(folder / "home", host_id))


def started(*command: str, marks: Mapping[str, str]) -> subprocess.Popen[str]:
    """Start a process with marks in its environment."""
    environment = {**os.environ, **marks}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


async def test_the_second_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    """A second worker of the same host is refused by the first one's process id; another host's is not."""
    async with be_host(tmp_path), be_host(tmp_path, "other"):
        with pytest.raises(HostRunsAlready, match=f"process {os.getpid()}$") as caught:
            async with be_host(tmp_path):
                pass
        assert (caught.value.exit_code, bool(caught.value.hint)) == (4, True)
    async with be_host(tmp_path):
        pass


async def test_a_killed_worker_is_no_other_worker(tmp_path: Path) -> None:
    """Right after a kill -9 the host can be had, although something that the worker has forked lives on."""
    mark = uuid4().hex
    with started(sys.executable, "-c", WORKER, str(tmp_path), marks={MARK: mark}) as worker:
        assert worker.stdout
        assert {worker.stdout.readline() for _ in range(2)} == {"child\n", "up\n"}
        with pytest.raises(HostRunsAlready, match=f"process {worker.pid}$"):
            async with be_host(tmp_path):
                pass
        worker.kill()
        worker.wait()
        (child,) = marked(mark)
        try:
            assert LockFolder(tmp_path / "locks").try_take("host-h") is not None
        finally:
            os.kill(child, 9)


async def test_a_holder_without_a_name_is_given_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that a dead or unknown process has is waited for, and refused if that does not end."""
    monkeypatch.setattr(sole, "DYING", 0.2)
    lock = LockFolder(tmp_path / "locks").try_take("host-h")
    assert lock is not None
    for holder in (None, Holder(pid=os.getpid(), started=1, host="h")):
        if holder:
            lock.sign(holder)
        with pytest.raises(HostRunsAlready, match="a process that left no name"):
            async with be_host(tmp_path):
                pass
    lock.close()


async def test_nothing_is_left_of_an_earlier_life(tmp_path: Path) -> None:
    """Before a worker does anything the works of an earlier one are gone, and the folders of their leases."""
    folder = tmp_path / "home/hosts/h/leases/task-1.1.7"
    folder.mkdir(parents=True)
    marks = {HOST: "h", LOCKS: str(tmp_path / "locks"), LEASE: "task-1.1.7"}
    with started("sleep", "300", marks=marks) as work:
        async with be_host(tmp_path):
            assert work.wait(10) == -9
            assert not folder.exists()


async def test_a_lock_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """The error names the folder and what to do about it."""
    (tmp_path / "locks").touch()
    with pytest.raises(InvalidRequest, match=r"the device locks cannot be used: .*locks") as caught:
        async with be_host(tmp_path):
            pass
    assert caught.value.hint == f"Let all users write to it, once, as root: install -d -m 1777 {tmp_path}/locks"

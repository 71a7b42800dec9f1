"""Locks hold against every process of the machine, and end with the last one that holds them."""

from __future__ import annotations

import asyncio
import fcntl
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from support.guarded import open_files
from toolcrib.activities.locks import HeldLock, Holder, LockFolder

ME = Holder.this_process("h", "task-1.1.7")

OTHER = """
import os, sys
from pathlib import Path
from toolcrib.activities.locks import Holder, LockFolder

locks, me = LockFolder(Path(sys.argv[1])), Holder.this_process("other", "task-2.1.8")
if sys.argv[2] == "nobody" and os.geteuid() == 0:
    os.setuid(65534)
lock = locks.try_take("one")
if lock is None:
    sys.exit(9)
lock.sign(me)
print("had", flush=True)
sys.stdin.read()
"""


def other(folder: Path, user: str = "me") -> subprocess.Popen[str]:
    """Start a process that takes the lock `one` and keeps it until its input ends, or exits with 9."""
    return subprocess.Popen(
        [sys.executable, "-c", OTHER, str(folder), user], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def is_had_by(process: subprocess.Popen[str]) -> bool:
    """Return whether a process got the lock."""
    assert process.stdout
    return process.stdout.readline() == "had\n"


def taken(folder: LockFolder, name: str = "one") -> HeldLock:
    """Take a lock that is free."""
    lock = folder.try_take(name)
    assert lock is not None
    return lock


def is_free(folder: LockFolder, name: str = "one") -> bool:
    """Return whether a lock can be had."""
    lock = folder.try_take(name)
    if lock is not None:
        lock.close()
    return lock is not None


@pytest.fixture
def folder(tmp_path: Path) -> LockFolder:
    """A folder that is not there yet."""
    return LockFolder(tmp_path / "of" / "locks")


def test_one_process_has_a_lock(folder: LockFolder) -> None:
    """What one has no other gets, within the process or from another one, until it is released."""
    lock = taken(folder)
    lock.sign(ME)
    assert not is_free(folder)
    with other(folder.path) as second:
        assert second.wait() == 9
    lock.release(clean=True)
    with other(folder.path) as third:
        assert is_had_by(third)
        assert not is_free(folder)
        holder = folder.holder("one")
        assert holder is not None
        assert (holder.pid, holder.lease, holder.alive) == (third.pid, "task-2.1.8", True)
        assert str(holder) == f"lease task-2.1.8 of host other (process {third.pid})"


def test_a_lock_ends_with_its_last_copy(folder: LockFolder) -> None:
    """Copies of the file descriptors, as other processes get them, keep it when the first holder has let it go."""
    lock = taken(folder)
    copies = [os.dup(fd) for fd in lock.fds]
    lock.release(clean=False)
    assert not is_free(folder)
    os.close(copies.pop())
    assert not is_free(folder)
    os.close(copies.pop())
    assert is_free(folder)


def test_who_died_with_a_lock_is_known(folder: LockFolder) -> None:
    """The next holder learns who had it and did not release it; who released it is forgotten."""
    with other(folder.path) as dying:
        assert is_had_by(dying)
        dying.kill()
        dying.wait()
    lock = taken(folder)
    assert lock.unreleased is not None
    assert (lock.unreleased.lease, lock.unreleased.alive) == ("task-2.1.8", False)
    lock.sign(ME)
    lock.release(clean=True)
    assert taken(folder).unreleased is None


def test_a_cleaner_does_not_free_a_lock(folder: LockFolder) -> None:
    """A lock whose file is deleted, or the whole folder, is still had."""
    lock = taken(folder)
    for file in folder.path.iterdir():
        file.unlink()
    assert not is_free(folder)
    for file in folder.path.iterdir():
        file.unlink()
    folder.path.rmdir()
    assert not is_free(folder)
    with other(folder.path) as second:
        assert second.wait() == 9
    lock.release(clean=True)
    assert is_free(folder)


def test_a_file_that_was_deleted_before_it_was_locked_is_no_lock(
    folder: LockFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a cleaner comes between opening and locking, the file that has the name now is locked instead."""
    is_free(folder)
    (file,) = folder.path.iterdir()
    flock, came = fcntl.flock, list[bool]()

    def late(fd: int, operation: int) -> None:
        if not came:
            came.append(True)
            file.unlink()
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    lock = taken(folder)
    assert os.path.samestat(os.fstat(lock.fds[0]), file.stat())


@pytest.mark.parametrize("name", ["device-a/../../b", "device-" + "x" * 300, "device-é b:c\n", "..", "."])
def test_any_name_is_a_file_of_the_folder(folder: LockFolder, name: str) -> None:
    """Whatever a name holds, its file is in the folder, and another name's is another."""
    one, two = taken(folder, name), taken(folder, name + "x")
    files = list(folder.path.iterdir())
    assert {(file.stat().st_ino) for file in files} == {os.fstat(lock.fds[0]).st_ino for lock in (one, two)}
    assert not is_free(folder, name)


def test_the_folder_is_for_everybody(folder: LockFolder) -> None:
    """The folder is created with mode 1777, and again if it was deleted; files may be locked by all users."""
    umask = os.umask(0o077)
    try:
        for _ in range(2):
            taken(folder, "a").close()
            assert stat.S_IMODE(folder.path.stat().st_mode) == 0o1777
            (file,) = folder.path.iterdir()
            assert stat.S_IMODE(file.stat().st_mode) == 0o644
            file.unlink()
            folder.path.rmdir()
    finally:
        os.umask(umask)


def test_a_file_that_may_not_be_written_can_be_locked() -> None:
    """Who may only read a lock's file takes the lock all the same, and leaves what is written there."""
    with tempfile.TemporaryDirectory() as shared:
        Path(shared).chmod(0o755)
        folder = LockFolder(Path(shared) / "locks")
        lock = taken(folder)
        lock.sign(ME)
        lock.close()
        (file,) = folder.path.iterdir()
        file.chmod(0o444)
        with other(folder.path, "nobody") as reader:
            assert is_had_by(reader)
            assert not is_free(folder)
            assert folder.holder("one") == ME


def test_a_link_is_not_followed(folder: LockFolder, tmp_path: Path) -> None:
    """Who puts a link in place of a lock's file makes nobody write elsewhere."""
    is_free(folder)
    (file,) = folder.path.iterdir()
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        folder.try_take("one")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("path", ["/proc/locks/of/ours", "/proc/ours"])
def test_a_folder_that_cannot_be_used_is_an_error(path: str) -> None:
    """Nobody gets a lock in a folder that cannot be created, and no file descriptor is lost."""
    before = open_files(os.getpid())
    with pytest.raises(OSError, match=path.split("/")[-1]):
        LockFolder(Path(path)).try_take("one")
    assert open_files(os.getpid()) <= before


async def test_waiting_ends_with_the_holder(folder: LockFolder) -> None:
    """Who waits gets the lock when it is let go, and None when patience is over before."""
    lock = taken(folder)
    assert await folder.take("one", 0.05) is None
    waiting = asyncio.create_task(folder.take("one", 30))
    await asyncio.sleep(0)
    assert not waiting.done()
    lock.release(clean=True)
    assert await waiting is not None


@pytest.mark.parametrize("content", ["", "{", "{}", '{"pid": "x"}', "\0\0", "7"])
def test_what_is_no_record_names_nobody(folder: LockFolder, content: str) -> None:
    """A lock file that anything else has written to is as good as an empty one."""
    is_free(folder)
    (file,) = folder.path.iterdir()
    file.write_text(content, encoding="utf-8")
    assert folder.holder("one") is None
    assert taken(folder).unreleased is None

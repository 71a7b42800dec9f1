"""Locks that all of a machine's processes respect, and that end with the last process that holds them. Linux only.

A lock is two things at once, and both have to be free. A file, which says who has it; and an abstract socket address,
which is no file: no cleaner can delete it, and no private /run or /tmp hides it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import json
import os
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

FIRST_PAUSE: Final = 0.005
LONGEST_PAUSE: Final = 0.1
"""Seconds between two tries to take a lock that is held."""
MAX_RECORD: Final = 4096
MAX_NAME: Final = 200
"""Characters of a file's name; a longer one is cut, and its hash added."""


@dataclass(frozen=True, kw_only=True)
class Holder:
    """Who has a lock, as the holder wrote it down."""

    pid: int
    started: int
    """When the process began, in ticks since boot: a later one with the same id is another."""
    host: str
    lease: str | None = None

    @classmethod
    def this_process(cls, host: str, lease: str | None = None) -> Holder:
        """Return what this process writes down."""
        return cls(pid=os.getpid(), started=_start_of(os.getpid()) or 0, host=host, lease=lease)

    @property
    def alive(self) -> bool:
        """Whether the process still exists."""
        return _start_of(self.pid) == self.started

    def __str__(self) -> str:
        return f"{f'lease {self.lease} of ' if self.lease else ''}host {self.host} (process {self.pid})"


_HOLDER: Final = TypeAdapter(Holder)


class HeldLock:
    """A lock that this process has, and shares with whoever gets copies of its `fds`."""

    def __init__(self, fds: tuple[int, int]) -> None:
        self.fds: tuple[int, ...] = fds
        """To be passed to other processes: the lock is free when all copies are closed."""
        self._file = fds[0]
        self._writable = fcntl.fcntl(self._file, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR
        self.unreleased = _read(self._file) if os.fstat(self._file).st_uid == os.geteuid() else None
        """Who had it before and died with it. Believed only of files that nobody else could have written."""

    def sign(self, holder: Holder) -> None:
        """Write down who has it, unless the file is another user's.

        Raises:
            OSError: it cannot be written.
        """
        if self._writable:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, json.dumps(asdict(holder)).encode(), 0)

    def release(self, *, clean: bool) -> None:
        """Give up this process's part; `clean` says that nothing is left of what it was taken for."""
        if clean and self._writable:
            os.ftruncate(self._file, 0)
        self.close()

    def close(self) -> None:
        """Close this process's copies, and change nothing else."""
        fds, self.fds = self.fds, ()
        for fd in fds:
            os.close(fd)


class LockFolder:
    """The folder of a machine's locks, by their names. It is created, for all users, when it is missing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def take(self, name: str, patience: float) -> HeldLock | None:
        """Return the lock, or None if somebody has it for all of `patience` seconds.

        Raises:
            OSError: the folder cannot be used.
        """
        pause, end = FIRST_PAUSE, time.monotonic() + patience
        while (lock := self.try_take(name)) is None and time.monotonic() < end:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        return lock

    def try_take(self, name: str) -> HeldLock | None:
        """Return the lock, or None if somebody has it.

        Raises:
            OSError: the folder cannot be used.
        """
        address = _bound(self._address(name))
        if address is None:
            return None
        try:
            file = self._locked(name)
        except OSError:
            os.close(address)
            raise
        if file is None:
            os.close(address)
            return None
        return HeldLock((file, address))

    def holder(self, name: str) -> Holder | None:
        """Return who has it, if that is known."""
        try:
            fd = os.open(self._file(name), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            return _read(fd)
        finally:
            os.close(fd)

    def _file(self, name: str) -> Path:
        quoted = quote(name, safe=":") + ".lock"
        if len(quoted) > MAX_NAME:
            quoted = quoted[: MAX_NAME // 2] + "-" + hashlib.sha256(name.encode()).hexdigest() + ".lock"
        return self.path / quoted

    def _address(self, name: str) -> bytes:
        return b"\0toolcrib-" + hashlib.sha256(f"{self.path}\0{name}".encode()).hexdigest().encode()

    def _locked(self, name: str) -> int | None:
        """Lock the file that has the name now: a cleaner may have deleted the one that was opened."""
        path = self._file(name)
        while True:
            fd = self._opened(path)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(fd), path.stat()):
                    return fd
            except FileNotFoundError:
                pass
            except OSError as error:
                os.close(fd)
                if isinstance(error, BlockingIOError):
                    return None
                raise
            os.close(fd)

    def _opened(self, path: Path) -> int:
        """Open or create a file that everybody may lock and only its owner may write."""
        flags = os.O_CLOEXEC | os.O_NOFOLLOW
        while True:
            # Not with O_CREAT at once: kernels refuse that for a file of another user's in a sticky folder.
            try:
                return os.open(path, flags | os.O_RDWR)
            except PermissionError:
                return os.open(path, flags | os.O_RDONLY)
            except FileNotFoundError:
                self._make()
            with contextlib.suppress(FileExistsError, FileNotFoundError):
                fd = os.open(path, flags | os.O_RDWR | os.O_CREAT | os.O_EXCL)
                os.fchmod(fd, 0o644)
                return fd

    def _make(self) -> None:
        with contextlib.suppress(FileExistsError):
            self.path.mkdir(parents=True)
            self.path.chmod(0o1777)


def _bound(address: bytes) -> int | None:
    """Return a socket that has the address, or None if another has it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        try:
            end.bind(address)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return None
        return end.detach()


def _read(fd: int) -> Holder | None:
    try:
        return _HOLDER.validate_json(os.pread(fd, MAX_RECORD, 0))
    except ValidationError:
        return None


def _start_of(pid: int) -> int | None:
    """Return when a process began, in ticks since boot; None if it is gone or only waits to be reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])

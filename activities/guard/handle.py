"""The guard, as its worker sees it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolcrib.activities.guard import guard_tree as tree
from toolcrib.activities.guard.errors import GuardLost, NotKilled, SpawnFailed
from toolcrib.activities.guard.orphans import end_orphans
from toolcrib.activities.guard.work import KILL_MARGIN, Channel, Work

START_TIMEOUT = 20.0
"""Seconds within which a guard must be ready."""
STARTING_AT_ONCE = 16
"""More would gain nothing, and file descriptors in flight are limited."""

_MAIN = Path(__file__).with_name("guard_main.py")


class Guard:
    """A process beside the worker that spawns all work and ends it whatever becomes of the worker. Linux only."""

    def __init__(self, process: asyncio.subprocess.Process, link: socket.socket, others: list[int]) -> None:
        self.pid = process.pid
        self.lost = asyncio.Event()
        """Set when the guard is gone, after `close()` as well."""
        self._process = process
        self._link = link
        self._slots = asyncio.Semaphore(STARTING_AT_ONCE)
        self._discarded: set[asyncio.Future[None]] = set()
        self._works: set[Work] = set()
        self._deadlines: dict[str, float] = {}
        self._locks: dict[str, tuple[int, ...]] = {}
        self._others = others
        self._ending: asyncio.Future[None] | None = None
        asyncio.get_running_loop().add_reader(link, self._on_lost)

    @classmethod
    async def start(cls) -> Guard:
        """Start a guard: early, while the worker is small.

        In a process that is a subreaper, children that come later are taken for the guard's orphans once it has died.

        Raises:
            GuardLost: it did not get ready.
        """
        others = tree.children(os.getpid())
        link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        link.setblocking(False)
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", "-X", "utf8", _MAIN, str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=None if sys.__stderr__ else subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        try:
            async with asyncio.timeout(START_TIMEOUT):
                ready = await asyncio.get_running_loop().sock_recv(link, 16)
        except (TimeoutError, ConnectionError):
            ready = b""
        if not ready:
            link.close()
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise GuardLost("the guard process did not start", hint="Its last words are on this worker's stderr.")
        return cls(process, link, others)

    async def spawn(
        self,
        lease_id: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stdin: int,
        stdout: int,
        stderr: int,
        deadline: float | None = None,
    ) -> Work:
        """Start `argv` as work of a lease; the caller keeps, and closes, its own copies of the file descriptors.

        `env` is the whole environment, its PATH finds the command. `deadline` is in seconds of `boottime()`, by default
        the lease's, as `extend` last set it. A cancelled call returns when nothing of the work is left.

        Raises:
            SpawnFailed: the command did not start; the message says why.
            GuardLost: the guard is gone; what had started has been killed.
        """
        _check(argv, env)
        if deadline is not None:
            self._deadlines[lease_id] = deadline
        async with self._slots:
            channel = self._open_channel(stdin, stdout, stderr, *self._locks.get(lease_id, ()))
            order = {"argv": list(argv), "env": dict(env), "cwd": str(cwd), "deadline": self._deadlines.get(lease_id)}
            starting = asyncio.ensure_future(self._begin(lease_id, channel, order))
            try:
                return await asyncio.shield(starting)
            except asyncio.CancelledError:
                # Nobody got a handle to end it with; a second cancellation does not stop this either.
                discarded = asyncio.ensure_future(_discard(starting))
                self._discarded.add(discarded)
                discarded.add_done_callback(self._discarded.discard)
                await asyncio.shield(discarded)
                raise

    def hold(self, lease_id: str, locks: tuple[int, ...]) -> None:
        """Have the works of a lease, those yet to start, keep these open until nothing is left of them."""
        self._locks[lease_id] = locks

    def has_work(self, lease_id: str) -> bool:
        """Return whether anything may be left of the lease's works."""
        return any(work.lease_id == lease_id for work in self._works)

    async def end(self, lease_id: str) -> None:
        """Kill the works of a lease that still run, at once.

        Raises:
            NotKilled: something does not end.
        """
        for work in [work for work in self._works if work.lease_id == lease_id]:
            await work.kill(grace=0)

    def extend(self, lease_id: str, deadline: float) -> None:
        """Let all works of a lease, those yet to start as well, run until `deadline`, in seconds of `boottime()`."""
        self._deadlines[lease_id] = deadline
        for work in self._works:
            if work.lease_id == lease_id:
                work.extend(deadline)

    def forget(self, lease_id: str) -> None:
        """Forget deadline and locks of a lease that is over."""
        self._deadlines.pop(lease_id, None)
        self._locks.pop(lease_id, None)

    async def close(self) -> None:
        """Kill everything that is left, at once, and wait for the guard's exit. May be called again.

        Raises:
            NotKilled: something does not end.
        """
        self._on_lost()
        try:
            async with asyncio.timeout(KILL_MARGIN):
                await self._process.wait()
                if self._works:
                    await asyncio.wait([work.ended for work in self._works])
        except TimeoutError:
            raise NotKilled(f"processes below the guard (process {self.pid}) do not end") from None

    def _open_channel(self, *fds: int) -> Channel:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self._link, [str(1 + len(fds)).encode()], [theirs.fileno(), *fds])
        except OSError as error:
            ours.close()
            if self.lost.is_set() or isinstance(error, ConnectionError):
                raise GuardLost(f"the guard (process {self.pid}) is gone") from None
            raise SpawnFailed(f"the guard takes no work: {error.strerror}", hint="Check: ulimit -n") from error
        return Channel(ours)

    async def _begin(self, lease_id: str, channel: Channel, order: dict[str, Any]) -> Work:
        await channel.order(order)
        reply = await channel.receive()
        if reply and "started" in reply:
            work = Work(lease_id, reply["started"], channel, self._orphans_ended)
            self._works.add(work)
            work.ended.add_done_callback(lambda _: self._works.discard(work))
            if lease_id in self._deadlines:  # it may have moved meanwhile
                work.extend(self._deadlines[lease_id])
            return work
        channel.close()
        if reply and "failed" in reply:
            stage, number = reply["failed"]
            raise SpawnFailed.because(stage, number, order["argv"], order["env"], order["cwd"])
        if not reply:
            await self._orphans_ended()
        raise GuardLost(f"the guard of lease {lease_id} died, its work was killed")

    async def _orphans_ended(self) -> None:
        """Return when nothing is left of a guard that has died: its keepers may have died with it, and end nothing."""
        if not tree.is_subreaper():
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(KILL_MARGIN):
                await self._process.wait()
        if self._process.returncode is not None:
            self._ending = self._ending or asyncio.ensure_future(end_orphans(self._others))
            await asyncio.shield(self._ending)

    def _on_lost(self) -> None:
        if not self.lost.is_set():
            asyncio.get_running_loop().remove_reader(self._link)
            self._link.close()
            self.lost.set()


async def _discard(starting: asyncio.Future[Work]) -> None:
    with contextlib.suppress(SpawnFailed, GuardLost):
        work = await starting
        await work.kill(grace=0)


def _check(argv: Sequence[str], env: Mapping[str, str]) -> None:
    """Refuse what no exec can take, before a process is forked for it."""
    if not argv or not argv[0]:
        raise SpawnFailed("could not start anything: no command was given", hint="Name a program.")
    for label, text in [(f"argument {n}", a) for n, a in enumerate(argv)] + [(f"variable {n}", env[n]) for n in env]:
        try:
            encoded = os.fsencode(text)
        except UnicodeEncodeError:
            encoded = b"\0"
        if b"\0" in encoded:
            raise SpawnFailed(
                f"could not start {argv[0]!r}: {label} holds a NUL or half a character", hint="Remove it."
            )
    for name in env:
        if not name or "=" in name or "\0" in name:
            raise SpawnFailed(f"could not start {argv[0]}: {name!r} cannot name a variable", hint="Rename it.")

"""How a lease comes by its device: no two works on this machine have one at the same time, whatever else goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import structlog

from toolcrib.activities.fencing import ServedFencing
from toolcrib.activities.guard import Guard, NotKilled, boottime
from toolcrib.activities.leftovers import LEASE, end_leftovers
from toolcrib.activities.locks import HeldLock, Holder, LockFolder
from toolcrib.scheduling.errors import ToolcribError
from toolcrib.scheduling.lease import Lease

LONGEST_WAIT: Final = 10.0
"""Seconds to wait for a device that another lease still has, unless the ttl is shorter."""

_log = structlog.get_logger(__name__)


class DeviceRefused(ToolcribError):
    """A lease does not get its device; nothing of its work was started."""

    code = "device_refused"


class Possessions:
    """What keeps the devices of a host apart: locks that all of the machine respects, and the numbers served."""

    def __init__(self, guard: Guard, locks: LockFolder, served: ServedFencing) -> None:
        self.guard = guard
        self.locks = locks
        self.served = served
        self.leaving: set[asyncio.Task[None]] = set()
        """What waits for code that does not give up its device."""

    @property
    def folder(self) -> Path:
        """Where the locks are."""
        return self.locks.path

    def of(self, lease: Lease) -> Possession:
        """Return the possession of a lease, yet to be taken."""
        return Possession(lease, self)


class Possession:
    """The hold of one lease on its device, which it shares with the guard and the keepers of its works."""

    def __init__(self, lease: Lease, means: Possessions) -> None:
        self._lease = lease
        self._means = means
        self._held = False
        self.users: list[Future[Any]] = []
        """What runs in other threads: none of it may be left when the device is given up."""
        self.cleanup: Callable[[], Awaitable[object]] | None = None
        """What to do when they have ended, before the device is given up."""
        self.dirty: str | None = None
        """Why the device is not clean after the work; None: it is, or was not touched."""
        self._cleaned_by = 0.0

    @property
    def busy(self) -> bool:
        """Whether any of its `users` has not ended."""
        return not all(user.done() for user in self.users)

    def extend(self, deadline: float) -> None:
        """Tell the guard until when the works may run, in seconds of `boottime()`; nothing before the device is had."""
        if self._held:
            self._means.guard.extend(self._lease.id, max(deadline, self._cleaned_by))

    def is_cleaned_within(self, seconds: float) -> None:
        """Let processes of the lease run so long from now, even if it is lost: its works are gone, cleaning is left.

        The lock keeps others away until that is done.
        """
        self._cleaned_by = boottime() + seconds
        self._means.guard.extend(self._lease.id, self._cleaned_by)

    @asynccontextmanager
    async def of(self, physical_id: str) -> AsyncIterator[None]:
        """Have the device for the length of a block, and clean up; the block has to leave nothing of the works behind.

        What is left all the same, since it cannot be killed or does not return, keeps the device until it is gone.

        Raises:
            DeviceRefused: another has it and does not give it up in time, or has had it with a higher fencing number.
        """
        guard, lease = self._means.guard, self._lease
        lock, signed = await self._locked(f"device-{physical_id}"), False
        try:
            await self._end_leftovers(lock)
            signed = True
            await self._record(lock)
            guard.hold(lease.id, lock.fds)
            self._held = True
            yield
        finally:
            self._held = False
            if not self.busy:
                self._leave(lock, signed=signed)
            else:
                leaving = asyncio.create_task(self._leave_late(lock))
                self._means.leaving.add(leaving)
                leaving.add_done_callback(self._means.leaving.discard)

    def _leave(self, lock: HeldLock, *, signed: bool) -> None:
        guard, lease = self._means.guard, self._lease
        lock.release(clean=signed and not guard.has_work(lease.id))
        guard.forget(lease.id)

    async def _leave_late(self, lock: HeldLock) -> None:
        lease = self._lease
        _log.error("a runner or driver does not stop; it keeps its device", lease=lease.id, device=lease.device_id)
        await self._users_gone()
        if self.cleanup is not None:
            await self.cleanup()
            await self._users_gone()
        self._leave(lock, signed=True)
        _log.warning("a runner or driver that did not stop has ended", lease=lease.id, device=lease.device_id)

    async def _users_gone(self) -> None:
        await asyncio.gather(*map(asyncio.wrap_future, self.users), return_exceptions=True)

    async def _locked(self, name: str) -> HeldLock:
        locks, lease = self._means.locks, self._lease
        try:
            lock = await locks.take(name, min(lease.ttl, LONGEST_WAIT))
        except OSError as error:
            raise DeviceRefused(f"the lock of device {lease.device_id} cannot be taken: {error}") from None
        if lock is None:
            holder = locks.holder(name)
            raise DeviceRefused(f"device {lease.device_id} is still in use by {holder or 'an unknown process'}")
        return lock

    async def _end_leftovers(self, lock: HeldLock) -> None:
        last = lock.unreleased
        if last is None or last.lease is None:
            return
        try:
            killed = await end_leftovers({LEASE: last.lease})
        except NotKilled as error:
            raise DeviceRefused(f"device {self._lease.device_id} is not free: {error.message}") from None
        _log.warning("the last holder of a device died with it", holder=str(last), killed=list(killed))

    async def _record(self, lock: HeldLock) -> None:
        lease = self._lease
        try:
            lock.sign(Holder.this_process(lease.host_id, lease.id))
            served = await self._means.served.serve(lease.device_id, lease.fencing)
        except OSError as error:
            raise DeviceRefused(f"the use of device {lease.device_id} cannot be recorded: {error}") from None
        if served is not None:
            raise DeviceRefused(
                f"device {lease.device_id} has served fencing number {served}; {lease.fencing} is not higher"
            )

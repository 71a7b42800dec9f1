"""The leases under which workflows run in this process, and what of them an activity gets to see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Final

from toolcrib.activities.aside import here
from toolcrib.activities.context import LeaseContext
from toolcrib.activities.renewal import LeaseLost
from toolcrib.activities.runners.aside import PROCESSES_GRACE, Link

_CURRENT: Final[ContextVar[HeldLease]] = ContextVar("toolcrib_lease")


def current_lease() -> LeaseContext:
    """Return the lease under which the calling activity runs, for use in any thread or event loop.

    Raises:
        LeaseLost: it is not held any more, or the caller is no activity under a lease. So does `progress()` then.
    """
    held = _CURRENT.get(None)
    if held is None:
        raise LeaseLost("this is no activity under a lease", hint="Call it in an activity that a leased workflow runs.")
    held.check()
    return held.shared


class HeldLease:
    """One lease, while a workflow runs under it. To be made and closed in the loop that renews leases."""

    def __init__(self, context: LeaseContext) -> None:
        self.over = False
        """Whether nothing more may be done in its name."""
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when its activities have ended, or will not."""
        self._context = context
        self._link = Link(asyncio.get_running_loop(), context)
        self._cancels: dict[Future[Any], Callable[[], None]] = {}
        self.shared = replace(context, guard=self._link, reporter=_Reports(self))
        """What its activities see."""

    def check(self) -> None:
        """Let only a lease pass that is held. Raises `LeaseLost`."""
        if self.over:
            raise LeaseLost(f"lease {self._context.lease.id} is no longer held by this worker")

    @contextmanager
    def visible(self) -> Iterator[None]:
        """Make it the lease that `current_lease` returns."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)

    def entered(self, activity: Future[Any], cancel: Callable[[], None]) -> None:
        """Take note of an activity that runs: the device is not free before it has ended."""
        self._cancels[activity] = cancel
        self._context.users.append(activity)

    async def close(self, within: float) -> bool:
        """Give the lease up: cancel its activities, and return whether they have ended within so many seconds."""
        self.over = True
        self._link.cut()
        self.shared.stop.set()
        running = [activity for activity in self._cancels if not activity.done()]
        for activity in running:
            self._cancels[activity]()
        try:
            return await _ended(running, PROCESSES_GRACE) or await self._ended_by_force(running, within)
        finally:
            self.closed.set_result(None)

    async def _ended_by_force(self, running: list[Future[Any]], within: float) -> bool:
        await self._context.guard.end(self._context.lease.id)
        return await _ended(running, within - PROCESSES_GRACE)

    def report(self, value: float, message: str | None) -> None:
        """Take note of progress, for as long as the lease is held."""
        self.check()
        self._link.report(value, message)

    async def flush(self) -> None:
        """Send what was not sent yet."""
        await self._link.flush()


class HeldLeases:
    """Those of one host, by id."""

    def __init__(self) -> None:
        self._held: dict[str, HeldLease] = {}

    def open(self, context: LeaseContext) -> HeldLease:
        """Take note of a lease under which a workflow is going to run."""
        held = self._held[context.lease.id] = HeldLease(context)
        held.closed.add_done_callback(lambda _: self._held.pop(context.lease.id, None))
        return held

    def get(self, lease_id: str | None) -> HeldLease:
        """Return a lease that is held.

        Raises:
            LeaseLost: it is not, or there is none.
        """
        if lease_id is None:
            raise LeaseLost("the activities of this host run under leases only", hint="Submit the workflow as a task.")
        held = self._held.get(lease_id)
        if held is None:
            raise LeaseLost(f"lease {lease_id} is not held by this worker")
        held.check()
        return held


class _Reports:
    """Takes the progress of a held lease's activities."""

    def __init__(self, held: HeldLease) -> None:
        self._held = held

    def report(self, value: float, message: str | None = None) -> None:
        self._held.report(value, message)

    async def flush(self) -> None:
        await self._held.flush()


async def _ended(activities: list[Future[Any]], within: float) -> bool:
    if left := [here(activity) for activity in activities if not activity.done()]:
        await asyncio.wait(left, timeout=max(within, 0.0))
    return all(activity.done() for activity in activities)

"""The steps of a definition that run, or have run, under each lease of this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from toolcrib.activities.context import LeaseContext
from toolcrib.activities.guard import NotKilled
from toolcrib.definitions.steps import StepEnd

ENDS_WITHIN: Final = 5.0
"""Seconds in which an attempt has to be gone that the server has given up."""
KILL_EVERY: Final = 0.5
"""Seconds until its processes are killed again: one may just have been starting, and not be known yet."""


class LeaseSteps:
    """Those under one lease. They run one after another, all in the loop that renews leases."""

    def __init__(self) -> None:
        self.ends: dict[str, StepEnd] = {}
        """What came of each step, or of its newest attempt, by id."""
        self._running: asyncio.Future[None] | None = None

    @asynccontextmanager
    async def alone(self, context: LeaseContext) -> AsyncIterator[None]:
        """Let no two attempts run side by side: the server tries again what it has not heard of for a while.

        Raises:
            NotKilled: a former one does not end.
        """
        if self._running is not None:
            await _ended(self._running, context)
        ended = self._running = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            ended.set_result(None)


async def _ended(running: asyncio.Future[None], context: LeaseContext) -> None:
    try:
        async with asyncio.timeout(ENDS_WITHIN):
            while not running.done():
                await context.guard.end(context.lease.id)
                await asyncio.wait({running}, timeout=KILL_EVERY)
    except TimeoutError:
        raise NotKilled(f"a former attempt at a step does not end (lease {context.lease.id})") from None


_by_lease: Final[dict[str, LeaseSteps]] = {}


def steps_of(lease_id: str) -> LeaseSteps:
    """Return the steps of a lease."""
    return _by_lease.setdefault(lease_id, LeaseSteps())


def forget(lease_id: str) -> list[StepEnd]:
    """Return what came of the steps of a lease, which is over."""
    steps = _by_lease.pop(lease_id, None)
    return [] if steps is None else list(steps.ends.values())

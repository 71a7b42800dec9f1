"""Which leases have got to a host: a worker that leaves waits for those on their way, and pools may ask for them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from toolcrib.scheduling.lease import Lease

Result = TypeVar("Result")


class Arrivals:
    """The newest lease of each device of one host, and those that are open."""

    def __init__(self) -> None:
        self.closed = False
        """Whether leases that arrive now are given back unused."""
        self.open: dict[str, Lease] = {}
        """Leases that are being worked on, or wait for their device, by id."""
        self._newest: dict[str, int] = {}
        self._changed = asyncio.Event()

    def note(self, lease: Lease) -> None:
        """Take note of a lease that has just arrived; at once, so that a worker that stops cannot cut it off."""
        self._newest[lease.device_id] = max(lease.fencing, self._newest.get(lease.device_id, 0))
        self._changed.set()

    async def during(self, lease: Lease, work: Coroutine[Any, Any, Result]) -> Result:
        """Return what `work` returns, which is all that the lease's device is used for."""
        self.open[lease.id] = lease
        try:
            return await work
        finally:
            del self.open[lease.id]

    async def until(self, leases: Sequence[Lease]) -> None:
        """Wait until each of these leases has arrived, or a newer one of its device."""
        while any(lease.fencing > self._newest.get(lease.device_id, 0) for lease in leases):
            self._changed.clear()
            await self._changed.wait()

"""Which leases have got to a host, so that a worker that leaves can wait for those that are on their way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from toolcrib.scheduling.lease import Lease


class Arrivals:
    """The newest lease of each device of one host."""

    def __init__(self) -> None:
        self.closed = False
        """Whether leases that arrive now are given back unused."""
        self._newest: dict[str, int] = {}
        self._changed = asyncio.Event()

    def note(self, lease: Lease) -> None:
        """Take note of a lease that has just arrived; at once, so that a worker that stops cannot cut it off."""
        self._newest[lease.device_id] = max(lease.fencing, self._newest.get(lease.device_id, 0))
        self._changed.set()

    async def until(self, leases: Sequence[Lease]) -> None:
        """Wait until each of these leases has arrived, or a newer one of its device."""
        while any(lease.fencing > self._newest.get(lease.device_id, 0) for lease in leases):
            self._changed.clear()
            await self._changed.wait()

"""The activity that shows that a host's worker lives."""

from __future__ import annotations

import asyncio

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from toolcrib.activities.incarnation import Incarnation
from toolcrib.activities.renewal import LeaseLost, Renewal
from toolcrib.scheduling.messages import Presence
from toolcrib.workflows.contract import ANOTHER_WORKER, PRESENCE


class HostPresence:
    """Heartbeats for one host, and knows whether it does."""

    def __init__(self, incarnation: Incarnation) -> None:
        self._incarnation = incarnation
        self._running = 0
        self._changed = asyncio.Condition()
        self._leaving = asyncio.Event()

    @activity.defn(name=PRESENCE)
    async def presence(self, presence: Presence) -> None:
        """Heartbeat until the worker leaves, or the server no longer counts on this activity.

        Two workers of a host take from one queue for a while, and only the one that is meant shows its presence.
        """
        if presence.incarnation != self._incarnation.number:
            raise ApplicationError(
                f"incarnation {self._incarnation.number} took what is for {presence.incarnation}",
                type=ANOTHER_WORKER,
                category=ApplicationErrorCategory.BENIGN,
            )
        renewal = Renewal(presence.ttl, lambda _: None)
        await self._count(1)
        try:
            await renewal.during(self._leaving.wait())
        except LeaseLost:
            activity.logger.info("presence is no longer counted on")
        except asyncio.CancelledError:
            if not renewal.lost:
                raise
            activity.logger.info("presence is no longer counted on")
        finally:
            await self._count(-1)

    def leave(self) -> None:
        """End the presence, so that the pool hears of it at once."""
        self._leaving.set()

    async def until(self, *, shown: bool, timeout: float | None) -> None:  # noqa: ASYNC109 - as Condition.wait_for
        """Wait until the host's presence is shown, or no longer is.

        Raises:
            TimeoutError: it took longer than `timeout` seconds.
        """
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(lambda: (self._running > 0) is shown)

    async def _count(self, change: int) -> None:
        async with self._changed:
            self._running += change
            self._changed.notify_all()

"""How progress leaves a host: throttled where it arises, the last value always."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.scheduling.messages import Progress
from toolcrib.scheduling.progress import checked_progress

THROTTLE: Final = 0.25
"""Seconds between two events of one task, at least, unless its host is told otherwise."""
FRESHNESS: Final = 1 / 50
"""Of the time since the work first reported: how old the progress that is shown may be at most, beyond the throttle."""

_log = structlog.get_logger(__name__)


def pause_after(elapsed: float, throttle: float = THROTTLE) -> float:
    """Return how long to wait between two events when the first report was `elapsed` seconds ago.

    It grows, since a workflow's history is limited: in a day there are some 500 events, and few more in a week.
    """
    return max(throttle, elapsed * FRESHNESS)


class ProgressReporter:
    """Sends the progress of one lease: the first report at once, later ones with pauses between them."""

    def __init__(
        self, lease_id: str, send: Callable[[Progress], Awaitable[None]], *, throttle: float = THROTTLE
    ) -> None:
        self.newest: Progress | None = None
        """What was reported last, sent or not."""
        self._lease_id = lease_id
        self._send = send
        self._throttle = throttle
        self._next: Progress | None = None
        self._last: Progress | None = None
        self._sender: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._begin: float | None = None

    def report(self, value: float, message: str | None = None) -> None:
        """Take note of progress, from 0 to 1; one that is followed by another soon may never be sent.

        Raises:
            InvalidRequest: the value or the message is outside its limits.
        """
        self.newest = self._next = checked_progress(self._lease_id, value, message)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send_all())

    async def flush(self) -> None:
        """Send the last value now, if it was not; nothing is under way afterwards."""
        self._hurry.set()
        try:
            if self._sender is not None:
                await self._sender
        finally:
            self._hurry.clear()

    async def _send_all(self) -> None:
        while self._next is not None and self._next != self._last:
            report, self._next = self._next, None
            if await self._is_settled(report):
                self._last = report
            elif self._next is None and not self._hurry.is_set():
                self._next = report
            try:
                async with asyncio.timeout(self._pause()):
                    await self._hurry.wait()
            except TimeoutError:
                continue

    def _pause(self) -> float:
        now = asyncio.get_running_loop().time()
        if self._begin is None:
            self._begin = now
        return pause_after(now - self._begin, self._throttle)

    async def _is_settled(self, report: Progress) -> bool:
        """Send a report; return False if it is worth trying again."""
        try:
            await self._send(report)
        except RPCError as error:
            _log.warning("progress not delivered", lease=self._lease_id, reason=error.message)
            return error.status is RPCStatusCode.NOT_FOUND
        return True

"""How progress leaves a host: throttled where it arises, the last value always."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from temporalio.service import RPCError

from toolcrib.scheduling.messages import Progress
from toolcrib.scheduling.progress import checked_progress

THROTTLE: Final = 0.25
"""Seconds between two events of one task."""

_log = structlog.get_logger(__name__)


class ProgressReporter:
    """Sends the progress of one lease: the first report at once, later ones at most every `THROTTLE` seconds."""

    def __init__(self, lease_id: str, send: Callable[[Progress], Awaitable[None]]) -> None:
        self._lease_id = lease_id
        self._send = send
        self._next: Progress | None = None
        self._last: Progress | None = None
        self._sender: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()

    def report(self, value: float, message: str | None = None) -> None:
        """Take note of progress, from 0 to 1; one that is followed by another soon may never be sent.

        Raises:
            InvalidRequest: the value or the message is outside its limits.
        """
        self._next = checked_progress(self._lease_id, value, message)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send_all())

    async def flush(self) -> None:
        """Send the last value now, if it was not; nothing is under way afterwards."""
        self._hurry.set()
        if self._sender is not None:
            await self._sender

    async def _send_all(self) -> None:
        while self._next is not None and self._next != self._last:
            self._last, self._next = self._next, None
            try:
                await self._send(self._last)
            except RPCError as error:
                _log.warning("progress not delivered", lease=self._lease_id, reason=error.message)
            try:
                async with asyncio.timeout(THROTTLE):
                    await self._hurry.wait()
            except TimeoutError:
                continue

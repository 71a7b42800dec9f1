"""How a process is asked to stop: Ctrl-C or SIGTERM, and a second time for those in a hurry."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, Self, TypeVar

import structlog

Result = TypeVar("Result")

STOP_WITHIN: Final = 20.0
"""Seconds in which a process ends, beyond the time that its work gets to finish in."""
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

_log = structlog.get_logger(__name__)


@contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """Give an event that the first signal sets; the second one ends the process at once."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def ask(number: signal.Signals) -> None:
        if stop.is_set():
            _log.warning("stopping at once", signal=number.name)
            os._exit(128 + number)
        _log.info("stopping", signal=number.name)
        stop.set()

    for number in SIGNALS:
        loop.add_signal_handler(number, ask, number)
    try:
        yield stop
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


class ExitDeadline:
    """Ends the process if it does not end by itself: a server that is gone can hold up the SDK's own end."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def start(self, seconds: float) -> None:
        """End the process at once after `seconds`, unless the context has been left by then."""
        self._timer = threading.Timer(seconds, self._give_up)
        self._timer.daemon = True
        self._timer.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @staticmethod
    def _give_up() -> None:
        _log.error("not everything could be ended in order; ending all the same")
        os._exit(1)


async def unless_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, Result]) -> Result | None:
    """Return what `work` returns; or None, with `work` cancelled, if `stop` is set before."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not working.done():
        working.cancel()
        await asyncio.wait({working})
        return None
    return working.result()


async def until_stopped(stop: asyncio.Event, *failures: asyncio.Event) -> None:
    """Wait until `stop` or one of `failures` is set."""
    waits = [asyncio.create_task(event.wait()) for event in (stop, *failures)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()

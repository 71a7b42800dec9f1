"""How a process is asked to stop: Ctrl-C or SIGTERM, and a second time for those in a hurry."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog

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


async def until_stopped(stop: asyncio.Event, *failures: asyncio.Event) -> None:
    """Wait until `stop` or one of `failures` is set."""
    waits = [asyncio.create_task(event.wait()) for event in (stop, *failures)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()

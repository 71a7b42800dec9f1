"""Works for tests: every call is noted, and ends when the test says so."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import Any

from toolcrib.client import Toolcrib, WorkContext


class Gated:
    """The works `wait` and `block`, an async function and another: each call, by its `label`, waits for its end."""

    def __init__(self, crib: Toolcrib) -> None:
        self.started: list[str] = []
        self.stopped: list[str] = []
        """Labels of the calls that were told to stop."""
        self._ends: dict[str, Future[Any]] = {}
        self._lock = threading.Lock()
        crib.work("wait")(self.wait)
        crib.work("block")(self.block)

    async def wait(self, label: str) -> Any:
        """Be an async work."""
        self.started.append(label)
        try:
            return await asyncio.shield(asyncio.wrap_future(self._end(label)))
        except asyncio.CancelledError:
            self.stopped.append(label)
            raise

    def block(self, label: str, context: WorkContext) -> Any:
        """Be one that is not, and reports progress all the time."""
        self.started.append(label)
        try:
            while not self._end(label).done():
                context.progress(0.5, f"at {label}")
                threading.Event().wait(0.01)
        except asyncio.CancelledError:
            self.stopped.append(label)
            raise
        return self._end(label).result()

    def finish(self, label: str, result: Any = None) -> None:
        """Let the calls with that label return `result`."""
        self._end(label).set_result(result)

    def fail(self, label: str, error: Exception) -> None:
        """Let the calls with that label raise `error`."""
        self._end(label).set_exception(error)

    async def has_started(self, label: str) -> bool:
        """Return whether a call with that label has begun."""
        return label in self.started

    async def has_stopped(self, label: str) -> bool:
        """Return whether a call with that label was told to stop."""
        return label in self.stopped

    def _end(self, label: str) -> Future[Any]:
        with self._lock:
            return self._ends.setdefault(label, Future())

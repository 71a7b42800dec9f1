"""An event loop without real time: when all wait, its clock jumps to what is due next."""

from __future__ import annotations

import asyncio
import selectors
from typing import Any


class _Jumping(selectors.SelectSelector):
    """A selector that never waits, and notes how long it should have."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += max(timeout or 0.0, 0.0)
        return super().select(0)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Runs a day of timers in the time that their callbacks take. It has no use for anything from outside."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the simulated time, in seconds since the loop was made."""
        return self._jumping.now

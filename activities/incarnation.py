"""Which of its host's workers this process is, as its pool counts them."""

from __future__ import annotations

import asyncio


class Incarnation:
    """Not known until the worker has registered; a lease may arrive before the pool's answer does."""

    def __init__(self) -> None:
        self.number = 0
        """0: not known yet."""
        self._known = asyncio.Event()

    def is_now(self, number: int) -> None:
        """Take note of what the pool answered."""
        self.number = number
        self._known.set()

    async def known(self) -> int:
        """Return the number, as soon as it is known."""
        await self._known.wait()
        return self.number

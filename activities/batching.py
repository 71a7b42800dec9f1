"""Many callers, one call in flight: what arrives meanwhile goes out together in the next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

MAX_BATCH: Final = 100


class Batcher(Generic[Item, Answer]):
    """Sends items in batches. It keeps nothing, retries nothing, and a cancelled caller harms no other."""

    def __init__(self, send: Callable[[list[Item]], Awaitable[Sequence[Answer]]]) -> None:
        self._send = send
        self._waiting: list[tuple[Item, asyncio.Future[Answer]]] = []
        self._sender: asyncio.Task[None] | None = None

    async def __call__(self, item: Item) -> Answer:
        """Return the answer to `item`, or raise what its batch's call raised."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send_all())
        return await future

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
                wanted = [(item, future) for item, future in batch if not future.done()]
                if wanted:
                    await self._send_batch(wanted)
        finally:
            # Some are left only if this was cancelled; nobody may wait for an answer that cannot come.
            for _, future in self._waiting:
                future.cancel()

    async def _send_batch(self, batch: list[tuple[Item, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await self._send([item for item, _ in batch])
            answered = list(zip(batch, answers, strict=True))
        except Exception as error:  # noqa: BLE001 - it is raised where the answers are waited for
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
        else:
            for (_, future), answer in answered:
                if not future.done():
                    future.set_result(answer)
        finally:
            for _, future in batch:
                future.cancel()

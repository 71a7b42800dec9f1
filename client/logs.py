"""Reads and follows the logs of a task's attempts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Final

from temporalio.client import Client

from toolcrib.client.attempt_files import AttemptFiles
from toolcrib.client.watching import Watch
from toolcrib.scheduling.errors import HostUnreachable, UnknownAttempt, UnknownFile
from toolcrib.scheduling.views import AttemptView, TaskView

SHORTEST_PAUSE: Final = 0.2
LONGEST_PAUSE: Final = 1.0
LAST_WORDS: Final = 10.0
"""Seconds after an attempt's end in which its host may yet write to its log."""

OnAttempt = Callable[[AttemptView], None] | None
OnSilence = Callable[[str], None] | None


async def log_of(client: Client, attempt: AttemptView, on_attempt: OnAttempt = None) -> AsyncGenerator[bytes]:
    """Yield the log of an attempt: whole if it has ended, else as far as it is now.

    Raises:
        UnknownFile, HostUnreachable: as `AttemptFiles`.
    """
    files = AttemptFiles(client, attempt)
    if on_attempt is not None:
        on_attempt(attempt)
    if attempt.outcome is not None:
        async with aclosing(_to_its_end(files, lambda: True, lambda: None)) as pieces:
            async for data in pieces:
                yield data
        return
    offset, size = 0, None
    while size is None or offset < size:
        piece = await files.log(offset)
        if not piece.data:
            return
        yield piece.data
        offset += len(piece.data)
        size = size or piece.size


async def followed(
    client: Client, task_id: str, number: int | None, on_attempt: OnAttempt = None, on_silence: OnSilence = None
) -> AsyncGenerator[bytes]:
    """Yield the log of an attempt until it has ended; without a number the last one's, and of all that follow it.

    Raises:
        UnknownTask: there is no such task.
        UnknownAttempt: the task ended without such an attempt.
        UnknownFile, HostUnreachable: as `AttemptFiles`, of the last attempt that is followed.
    """
    async with _watched(client, task_id) as task:
        view = await task.attempted(number or 1)
        current = number or max(1, len(view.attempts))
        while len(view.attempts) >= current:
            attempt = view.attempts[current - 1]
            if on_attempt is not None:
                on_attempt(attempt)
            try:
                async with aclosing(_attempt_followed(client, task, attempt, on_silence)) as pieces:
                    async for data in pieces:
                        yield data
            except (UnknownFile, HostUnreachable):
                if number is not None or len((await task.attempted(current + 1)).attempts) <= current:
                    raise
                if on_silence is not None:
                    on_silence(attempt.host_id)
            if number is not None:
                return
            current += 1
            view = await task.attempted(current)
        if not view.attempts or number is not None:
            raise UnknownAttempt.named(task_id, number, len(view.attempts))


def _attempt_followed(
    client: Client, task: _Watched, attempt: AttemptView, on_silence: OnSilence
) -> AsyncGenerator[bytes]:
    def told() -> None:
        if on_silence is not None:
            on_silence(attempt.host_id)

    return _to_its_end(AttemptFiles(client, attempt), lambda: task.is_over(attempt), told)


async def _to_its_end(
    files: AttemptFiles, is_over: Callable[[], bool], on_silence: Callable[[], None]
) -> AsyncGenerator[bytes]:
    """Yield a log until the attempt is over and its host writes no more to it.

    Raises:
        UnknownFile, HostUnreachable: there is no log, or no answer, and the attempt is over.
    """
    now = asyncio.get_running_loop().time
    offset, pause, told = 0, SHORTEST_PAUSE, False
    over_since: float | None = None
    while True:
        if over_since is None and is_over():  # first: what was written before its end is then in the answer
            over_since = now()
        try:
            piece = await files.log(offset)
        except (UnknownFile, HostUnreachable) as fault:
            if over_since is not None:
                raise
            if isinstance(fault, HostUnreachable) and not told:
                on_silence()
                told = True
        else:
            told = False
            if piece.data:
                yield piece.data
                offset, pause = offset + len(piece.data), SHORTEST_PAUSE
            if offset < piece.size:
                continue
            if over_since is not None and (not piece.open or now() - over_since > LAST_WORDS):
                return
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE)


class _Watched:
    """A task, as it is now."""

    def __init__(self, views: AsyncIterator[TaskView]) -> None:
        self._view: TaskView | None = None
        self._changed = asyncio.Event()
        self.watching = asyncio.create_task(self._watch(views))
        self.watching.add_done_callback(lambda _: self._changed.set())

    async def attempted(self, number: int) -> TaskView:
        """Return the task as soon as it has so many attempts, or has ended. Raises what watching it raises."""
        while self._view is None or not (self._view.ended or len(self._view.attempts) >= number):
            if self.watching.done():
                self.watching.result()
            self._changed.clear()
            await self._changed.wait()
        return self._view

    def is_over(self, attempt: AttemptView) -> bool:
        """Return whether an attempt has ended, or is no longer one of the task, which was reset."""
        view = self._view
        if view is None or view.ended:
            return view is not None
        return not any(one.lease_id == attempt.lease_id and one.outcome is None for one in view.attempts)

    async def _watch(self, views: AsyncIterator[TaskView]) -> None:
        async for view in views:
            self._view = view
            self._changed.set()


@asynccontextmanager
async def _watched(client: Client, task_id: str) -> AsyncIterator[_Watched]:
    task = _Watched(Watch(client).changes(task_id))
    try:
        yield task
    finally:
        task.watching.cancel()
        await asyncio.wait({task.watching})
        _ = task.watching.cancelled() or task.watching.exception()

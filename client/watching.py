"""Watches tasks while they change: many at once, seldom enough, and through restarts of servers and schedulers.

Temporal's server is asked how long a task's history is, and its workflow is asked only when that has changed. Nothing
of it is written to any history.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError

from toolcrib.client.patience import may_pass
from toolcrib.client.pending import SharedQuestions
from toolcrib.client.reading import TaskReader
from toolcrib.scheduling.errors import CannotReplay, NoConnection, UnknownTask
from toolcrib.scheduling.views import TaskView

INTERVAL: Final = 0.25
"""Seconds between two looks at a task, while there are up to 20 of them."""
LOOKS_A_SECOND: Final = 80
"""At all tasks together: of more than 20, each is looked at less often."""
AT_ONCE: Final = 20
SILENCE: Final = 3.0
"""Seconds without an answer after which it is said that there is none."""
GONE_FOR: Final = 10.0
"""Seconds after which a task that was there is believed to be gone: a server that starts knows nothing at first."""


@dataclass(frozen=True)
class Look:
    """What a task was when it was looked at."""

    state: tuple[object, ...] | None
    """As long as it is the same, the task is as well; None: that cannot be known."""
    view: TaskView


class Watch:
    """Tasks that are watched together.

    `on_silence` is called when there is no answer about some of them, and not again before all have answered.
    """

    def __init__(self, client: Client, on_silence: Callable[[], None] | None = None) -> None:
        self._client = client
        self._on_silence = on_silence
        self.watched = 0
        """How many tasks are looked at."""
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._questions = SharedQuestions(client)
        self._silent: dict[str, None] = {}

    @property
    def interval(self) -> float:
        """Seconds between two looks at one task."""
        return max(INTERVAL, self.watched / LOOKS_A_SECOND)

    async def together(self, task_ids: Sequence[str]) -> AsyncGenerator[TaskView]:
        """Yield every change of these tasks, until all have ended. Raises what `changes` raises."""
        views: asyncio.Queue[TaskView | None] = asyncio.Queue()

        async def pump(task_id: str) -> None:
            async for view in self.changes(task_id):
                views.put_nowait(view)

        pumps = asyncio.gather(*map(pump, task_ids))
        pumps.add_done_callback(lambda _: views.put_nowait(None))
        try:
            while (view := await views.get()) is not None:
                yield view
            await pumps
        finally:
            pumps.cancel()
            await asyncio.wait({pumps})
            _ = pumps.cancelled() or pumps.exception()

    async def changes(self, task_id: str) -> AsyncIterator[TaskView]:
        """Yield a task now, and again whenever it has changed, until it has ended.

        Raises:
            UnknownTask: there is no such task.
        """
        reader, look = TaskReader(self._client, task_id), None
        self.watched += 1
        try:
            while look is None or not look.view.ended:
                before, look = look, await self._patient_look(reader, look)
                if before is None or look.view != before.view:
                    yield look.view
                if not look.view.ended:
                    await asyncio.sleep(self.interval)
        finally:
            self.watched -= 1
            self._silent.pop(task_id, None)

    async def _patient_look(self, reader: TaskReader, before: Look | None) -> Look:
        """Look at a task, again and again as long as nobody answers."""
        now = asyncio.get_running_loop().time
        failing_since: float | None = None
        gone_since: float | None = None
        while True:
            begun = now()
            try:
                look = await self._look(reader, before, failing_since)
            except UnknownTask:
                gone_since = gone_since or begun
                if before is None or now() - gone_since > GONE_FOR:
                    raise
                failing_since = None  # that is an answer
            except (NoConnection, RPCError) as error:
                if isinstance(error, RPCError) and not may_pass(error):
                    raise
                gone_since, failing_since = None, failing_since or begun
            else:
                self._silent.pop(reader.task_id, None)
                return look
            await asyncio.sleep(self.interval)

    async def _look(self, reader: TaskReader, before: Look | None, failing_since: float | None) -> Look:
        loop = asyncio.get_running_loop()
        async with self._gate:
            late = loop.call_at((failing_since or loop.time()) + SILENCE, self._fall_silent, reader.task_id)
            try:
                look = await self._read(reader, before)
            finally:
                late.cancel()
        if look.view.status != "queued" or look.view.error is not None:
            return look
        reason = await self._questions.reason(look.view.pool, reader.task_id)
        return Look(look.state, look.view.model_copy(update={"pending_reason": reason}))

    async def _read(self, reader: TaskReader, before: Look | None) -> Look:
        found = await reader.describe()
        state = (found.run_id, found.status, found.history_length)
        if before is not None and before.state == state:
            return before
        try:
            return Look(state, await reader.view(found))
        except CannotReplay as fault:
            return Look(None, await reader.unread(found, fault))

    def _fall_silent(self, task_id: str) -> None:
        if not self._silent and self._on_silence is not None:
            self._on_silence()
        self._silent[task_id] = None

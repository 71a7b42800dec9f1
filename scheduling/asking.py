"""Which tasks a pool asks after, when, and what it makes of the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from toolcrib.scheduling.messages import AskedAfter
from toolcrib.scheduling.pool import PoolState
from toolcrib.scheduling.repair import let_go
from toolcrib.scheduling.waiting import TaskQueue, Waiting

START_WITHIN: Final = 30.0
"""A client has so many seconds to start the task it had admitted."""
CHECK_AFTER: Final = START_WITHIN + 5.0
"""The pool asks Temporal so long after an admission or a grant whether the task runs."""
CHECK_EVERY: Final = 25.0
"""And so often, in seconds, whether those that ran still do."""
SURVEY_EVERY: Final = 10.0
"""A rebuilt pool looks so often for its tasks, in seconds, until it is open."""


class Inquiry:
    """Asks after the tasks of one pool. Times are unix seconds."""

    def __init__(self, state: PoolState, queue: TaskQueue) -> None:
        self._state = state
        self._queue = queue

    def task(self, task_id: str) -> Waiting | None:
        """Return a task that the pool knows, whether it waits, holds a device, or will wait when its work has ended."""
        held = self._state.held.get(task_id)
        return held.speaker if held else self._queue.get(task_id)

    def tasks(self) -> Iterator[Waiting]:
        """Yield the tasks that `task` returns."""
        yield from self._queue
        yield from (task for held in self._state.held.values() if (task := held.speaker) is not None)

    def due(self) -> float | None:
        """Return when to ask next; None while there is nobody to ask after."""
        checks = [task.check_at for task in self.tasks()]
        if self._state.survey_at is not None:
            checks.append(self._state.survey_at)
        return min(checks, default=None)

    def answered(self, found: AskedAfter, asked_at: float, now: float) -> dict[str, str]:
        """Take the answer to a question put at `asked_at`, and return why tasks were taken back, by task.

        A task that spoke in the meantime is believed instead, and one that was admitted has its time to be started. The
        device of a lease is free when the work must have ended.
        """
        taken: dict[str, str] = {}
        for task_id in (*found.gone, *found.missing):
            task = self.task(task_id)
            if task is None or task.heard_at >= asked_at:
                continue
            if task_id in found.gone:
                taken[task_id] = self._give_up(task_id, "its workflow was ended", now)
            elif task.heard_at + CHECK_AFTER <= asked_at:
                taken[task_id] = self._give_up(task_id, "there is no workflow of that id", now)
        for task in self.tasks():
            # Whose answer counted is asked after together with the others; who came due meanwhile, soon.
            if task.check_at <= asked_at or task.heard_at + CHECK_AFTER <= asked_at:
                task.check_at = now + CHECK_EVERY
        self._surveyed(now)
        return taken

    def _give_up(self, task_id: str, reason: str, now: float) -> str:
        self._queue.remove(task_id)
        if (held := self._state.held.get(task_id)) is None:
            return f"{reason}; it was queued"
        let_go(self._state, held, f"the task of its last lease is gone: {reason}", now)
        return f"{reason}; it held lease {held.lease.id} of {held.lease.device_key}"

    def _surveyed(self, now: float) -> None:
        """Note that a rebuilt pool has looked for its tasks; it looks again until it is open, and once more then."""
        if self._state.survey_at is not None and self._state.survey_at <= now:
            opens_at = self._state.opens_at
            self._state.survey_at = None if opens_at is None or opens_at <= now else min(now + SURVEY_EVERY, opens_at)

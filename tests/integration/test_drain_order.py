"""A long queue of background tasks drains in the order of its submission, at the cap and never above it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from support.lab import Lab
from toolcrib.client import TaskHandle, TaskRequest, TaskView, Toolcrib

DRAINS_WITHIN = 600.0
"""Seconds; an idle machine with two slow cores takes about 50 for 1,000."""


class Journal:
    """Notes the works in the order in which they start, and how many run at once."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.most = 0
        self._running = 0
        self._lock = threading.Lock()

    def note(self, number: int) -> int:
        """Be a work."""
        with self._lock:
            self.started.append(number)
            self._running += 1
            self.most = max(self.most, self._running)
        threading.Event().wait(0.01)
        with self._lock:
            self._running -= 1
        return number


def overtaken(times: list[float], place: int) -> int:
    """Return how many of those that were submitted before the one at `place` have started after it."""
    return sum(time > times[place] for time in times[:place])


@pytest.mark.no_replay
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("amount", "cap"), [(60, 1), (300, 3), pytest.param(1_000, 3, marks=pytest.mark.long)])
async def test_a_long_queue_drains_in_order_at_the_cap(lab: Lab, amount: int, cap: int) -> None:
    """Leases are given in the order of submission, and starts follow it as closely as they can.

    With `cap` leases out at once, at most `cap - 1` tasks that were assigned before another can start after it.
    """
    crib = await lab.pool(max_concurrent=cap)
    journal = Journal()
    crib.work("note")(journal.note)
    requests = [TaskRequest(work="note", inputs={"number": number}, pool="lab") for number in range(amount)]
    tasks = await crib.submit_many(requests)
    assert (await crib.pool().show()).queued == amount
    async with crib.worker(slots=cap + 2):
        await _drained(crib)
        views = await _views(tasks)
    assert [(view.status, view.result, len(view.attempts)) for view in views] == [("done", n, 1) for n in range(amount)]
    fencings = [view.attempts[0].fencing for view in views]
    assert fencings == sorted(fencings)
    times = [view.started_at.timestamp() for view in views if view.started_at]
    assert max(overtaken(times, place) for place in range(amount)) < cap
    assert sorted(journal.started) == list(range(amount))
    assert max(overtaken([float(journal.started.index(n)) for n in range(amount)], n) for n in range(amount)) < cap
    assert journal.most <= cap


async def _drained(crib: Toolcrib) -> None:
    async with asyncio.timeout(DRAINS_WITHIN):
        while (pool := await crib.pool().show()).queued or pool.leased:
            await asyncio.sleep(0.25)


async def _views(tasks: list[TaskHandle]) -> list[TaskView]:
    gate = asyncio.Semaphore(16)

    async def view(task: TaskHandle) -> TaskView:
        async with gate:
            return await task.status()

    return await asyncio.gather(*map(view, tasks))

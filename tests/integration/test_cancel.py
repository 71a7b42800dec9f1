"""Cancelling a task at every stage of its life."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.lab import Lab, eventually, until_pool, until_status
from support.runners import CONTROLLED, controlled
from toolcrib.client import TaskCancelled, TaskEnded, UnknownTask


async def test_a_queued_task_is_cancelled_at_once(lab: Lab, tmp_path: Path) -> None:
    """Its work never starts, and its place in the queue is free."""
    crib = await lab.pool()
    task = await crib.submit(f"touch {tmp_path / 'ran'}")
    await task.cancel()
    with pytest.raises(TaskCancelled):
        await task.result()
    async with lab.host():
        await (await crib.submit("true")).result()
    assert (await task.status()).status == "cancelled"
    assert (await crib.pool().show()).queued == 0
    assert not (tmp_path / "ran").exists()


async def test_an_assigned_task_is_cancelled(lab: Lab) -> None:
    """Its lease is revoked, and the device serves the next task."""
    crib = await lab.pool()
    await lab.register_only()
    task, next_one = await crib.submit("echo 1"), await crib.submit("echo 2")
    await until_status(task, "assigned")
    await task.cancel()
    view = await until_status(task, "cancelled")
    assert [attempt.outcome for attempt in view.attempts] == ["cancelled"]
    await until_status(next_one, "assigned")


async def test_an_ended_task_stays_as_it_is(lab: Lab) -> None:
    """Cancelling it is refused; cancelling a cancelled one again does nothing; an unknown one is named."""
    crib = await lab.pool()
    async with lab.host():
        done, cancelled = await crib.submit("true"), await crib.submit("sleep 60", tags=["none"])
        await done.result()
        with pytest.raises(TaskEnded):
            await done.cancel()
        assert (await done.status()).status == "done"
        await cancelled.cancel()
        await until_status(cancelled, "cancelled")
        await cancelled.cancel()
        with pytest.raises(UnknownTask):
            await crib.task("task-nobody").cancel()


async def test_the_runner_is_told(lab: Lab) -> None:
    """A runner inside the worker gets the cancellation, and its device serves the next task."""
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED):
        task = await crib.submit("told")
        await until_status(task, "dispatched")
        await task.cancel()
        with pytest.raises(TaskCancelled):
            await task.result()
        await eventually(_told, lambda told: "told" in told)
        other = await crib.submit("told-next")
        await until_status(other, "dispatched")
        controlled.finish("told-next", 7)
        assert await other.result() == 7


async def test_a_result_and_a_cancel_race(lab: Lab) -> None:
    """Whichever comes first stands, there is one end, and the device comes back."""
    crib = await lab.pool()
    ends = []
    async with lab.host(goal=CONTROLLED):
        for number in range(20):
            goal = f"race-{number}"
            task = await crib.submit(goal)
            await until_status(task, "dispatched")
            controlled.finish(goal)
            try:
                await task.cancel()
            except TaskEnded:
                assert (await task.status()).status == "done"
            view = await until_status(task, "done", "cancelled")
            ends.append(view.status)
            assert [attempt.outcome for attempt in view.attempts] == [view.status]
        await until_pool(crib, lambda pool: pool.leased == 0)
    assert len(ends) == 20


async def _told() -> list[str]:
    return controlled.cancelled

"""How many tasks run at once, and what an end means for those that wait. Rows S2-13, S2-15, S2-16, S2-21 to S2-31."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from support.lab import Lab, eventually, slot, until, until_pool, until_status
from support.runners import CONTROLLED, controlled
from toolcrib.activities.context import RunFailed
from toolcrib.client import TaskCancelled, TaskEnded, TaskFailed, TaskHandle, Toolcrib

FOUR = [slot(f"slot-{n}") for n in range(4)]


async def one_runs_one_waits(lab: Lab, row: str) -> tuple[TaskHandle, TaskHandle]:
    """Submit two goals, `ROW-a` and `ROW-b`, to a pool with one slot; return when the first runs."""
    crib = Toolcrib(lab.client, pool="lab")
    first, second = await crib.submit(f"{row}-a"), await crib.submit(f"{row}-b")
    await until_status(first, "dispatched")
    await controlled.context(f"{row}-a")
    assert (await second.status()).state == "pending"
    return first, second


async def runs_to_its_end(task: TaskHandle, goal: str) -> None:
    """Wait until a task that waited runs, and let it end."""
    assert (await until_status(task, "dispatched")).state == "running"
    controlled.finish(goal)
    await task.result()


async def test_s2_13_three_run_at_once_by_default(lab: Lab) -> None:
    """Of four tasks on four devices the last waits, because of the cap, and runs when a slot is free."""
    crib = Toolcrib(lab.client, pool="lab")
    await crib.pool().create()
    async with lab.host(goal=CONTROLLED, devices=FOUR):
        tasks = [await crib.submit(f"s2-13-{n}") for n in range(4)]
        for task in tasks[:3]:
            await until_status(task, "dispatched")
        pool = await crib.pool().show()
        assert (pool.max_concurrent, pool.leased, pool.queued) == (3, 3, 1)
        waiting = await tasks[3].status()
        assert (waiting.state, waiting.pending_reason and waiting.pending_reason.code) == ("pending", "cap")
        for n, task in enumerate(tasks):
            await runs_to_its_end(task, f"s2-13-{n}")


async def test_s2_15_the_cap_can_be_set(lab: Lab) -> None:
    """To one, at the pool's creation; and to more while tasks wait, which then start."""
    crib = await lab.pool(max_concurrent=1)
    async with lab.host(goal=CONTROLLED, devices=FOUR):
        first, second = await one_runs_one_waits(lab, "s2-15")
        await crib.pool().configure(max_concurrent=2)
        await until_status(second, "dispatched")
        assert (await first.status()).state == "running"
        await runs_to_its_end(first, "s2-15-a")
        await runs_to_its_end(second, "s2-15-b")


async def test_s2_16_never_more_than_the_cap_run_at_once(lab: Lab, tmp_path: Path) -> None:
    """Of 20 tasks on four devices, as the works themselves write down when they begin and end."""
    log = tmp_path / "log"
    crib = await lab.pool(max_concurrent=3)
    async with lab.host(devices=FOUR):
        tasks = [await crib.submit(f"echo 1 >>{log}; sleep 0.1; echo -1 >>{log}") for _ in range(20)]
        for task in tasks:
            await task.result()
    running = list(itertools.accumulate(map(int, log.read_text().split())))
    assert (len(running), running[-1]) == (40, 0)
    assert max(running) <= 3


async def test_s2_21_s2_22_s2_23_completion(lab: Lab) -> None:
    """Completed, with progress 1.0 though none was reported; and the next one starts."""
    await lab.pool()
    async with lab.host(goal=CONTROLLED):
        first, second = await one_runs_one_waits(lab, "s2-21")
        assert (await first.status()).progress is None
        controlled.finish("s2-21-a")
        view = await until(first, lambda view: view.ended)
        assert (view.state, view.progress) == ("completed", 1.0)
        await runs_to_its_end(second, "s2-21-b")


async def test_s2_24_s2_25_s2_26_failure(lab: Lab) -> None:
    """Failed, with the error's text as message; and the next one starts."""
    await lab.pool()
    async with lab.host(goal=CONTROLLED):
        first, second = await one_runs_one_waits(lab, "s2-24")
        controlled.fail("s2-24-a", RunFailed("the disk is full"))
        view = await until(first, lambda view: view.ended)
        assert (view.state, view.message) == ("failed", "the disk is full")
        with pytest.raises(TaskFailed, match="the disk is full"):
            await first.result()
        await runs_to_its_end(second, "s2-24-b")


async def test_s2_27_s2_30_s2_31_a_running_task_is_cancelled(lab: Lab) -> None:
    """Cancelled; its work is told to stop, and only then the next one starts in its slot."""
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED):
        first, second = await one_runs_one_waits(lab, "s2-27")
        await first.cancel()
        assert (await until(first, lambda view: view.ended)).state == "cancelled"
        with pytest.raises(TaskCancelled):
            await first.result()
        await until_status(second, "dispatched")
        assert controlled.cancelled.count("s2-27-a") == 1
        await runs_to_its_end(second, "s2-27-b")
        await until_pool(crib, lambda pool: pool.leased == 0)


async def test_s2_28_a_pending_task_is_cancelled_and_never_starts(lab: Lab) -> None:
    """Also when a slot becomes free later: the one behind it gets that."""
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED):
        first, second = await one_runs_one_waits(lab, "s2-28")
        third = await crib.submit("s2-28-c")
        await second.cancel()
        assert (await until(second, lambda view: view.ended)).state == "cancelled"
        controlled.finish("s2-28-a")
        await runs_to_its_end(third, "s2-28-c")
        await first.result()
        view = await second.status()
        assert (view.state, view.attempt, controlled.started("s2-28-b")) == ("cancelled", 0, 0)


async def test_s2_29_a_task_that_has_ended_cannot_be_cancelled(lab: Lab) -> None:
    """Completed and failed ones refuse it and stay as they are; a cancelled one stays cancelled without an error."""
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED, devices=FOUR):
        done, failed, cancelled = [await crib.submit(f"s2-29-{end}") for end in ("done", "failed", "cancelled")]
        controlled.finish("s2-29-done")
        controlled.fail("s2-29-failed", RunFailed("no"))
        await until_status(cancelled, "dispatched")
        await cancelled.cancel()
        ends = [await until(task, lambda view: view.ended) for task in (done, failed, cancelled)]
        await eventually(crib.pool().show, lambda pool: pool.leased == 0)
        for task in (done, failed):
            with pytest.raises(TaskEnded):
                await task.cancel()
        await cancelled.cancel()
        again = [await task.status() for task in (done, failed, cancelled)]
    assert [view.state for view in again] == ["completed", "failed", "cancelled"]
    assert [view.finished_at for view in again] == [view.finished_at for view in ends]


async def test_a_task_that_never_reports_shows_that_it_runs(lab: Lab) -> None:
    """Running, on which device, and since when, though nothing is heard of its progress."""
    await lab.pool()
    async with lab.host(goal=CONTROLLED):
        task = await Toolcrib(lab.client, pool="lab").submit("silent")
        view = await until_status(task, "dispatched")
        assert (view.state, view.host_id, view.device_id, view.progress) == ("running", "lab-1", "slot-1", None)
        assert view.started_at is not None
        await runs_to_its_end(task, "silent")

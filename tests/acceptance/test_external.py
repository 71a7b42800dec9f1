"""Tasks that run elsewhere. Rows S2-09, S2-35 to S2-37, K-07."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs
from temporalio.service import RPCError

from support.lab import Lab, eventually, until, until_pool, until_status
from support.lost_answers import LostAnswers, losing
from support.runners import CONTROLLED, controlled
from toolcrib.client import (
    Group,
    InvalidRequest,
    TaskCancelled,
    TaskEnded,
    TaskFailed,
    TaskHandle,
    Toolcrib,
    UnknownTask,
)


async def test_s2_35_an_external_task_runs_from_the_start(lab: Lab) -> None:
    """Its view has name, state and times, and no device; what is unset is not there."""
    task = await lab.crib.external("nightly backup").start()
    view = await task.status()
    assert (view.name, view.status, view.state, view.attempt, view.host_id) == (
        "nightly backup",
        "dispatched",
        "running",
        0,
        None,
    )
    assert view.started_at == view.created_at
    assert not {"progress", "message", "group_id", "group_name"} & set(view.model_dump())
    await task.complete()


async def test_s2_36_it_takes_no_slot(lab: Lab) -> None:
    """With the cap full it runs all the same, and a slot that it might have taken is free for others."""
    crib = await lab.pool(max_concurrent=1)
    async with lab.host(goal=CONTROLLED):
        running = await crib.submit("s2-36-a")
        await until_status(running, "dispatched")
        external = [await crib.external(f"external {n}").start() for n in range(5)]
        assert {(await task.status()).state for task in external} == {"running"}
        waiting = await crib.submit("s2-36-b")
        controlled.finish("s2-36-a")
        await until_status(waiting, "dispatched")
        assert (await crib.pool().show()).leased == 1
        controlled.finish("s2-36-b")
        await waiting.result()


async def test_s2_37_its_caller_says_how_it_goes(lab: Lab) -> None:
    """Progress, completion with a result, failure with a reason, and cancellation; in both vocabularies."""
    done, failed, cancelled = [await lab.crib.external(name).start() for name in ("done", "failed", "cancelled")]
    await done.progress(0.4, "copying")
    view = await until(done, lambda view: view.progress == 0.4)
    assert view.message == "copying"
    await done.complete({"files": 3})
    await failed.fail("the disk is full")
    await cancelled.cancel()
    ends = [await until(task, lambda view: view.ended) for task in (done, failed, cancelled)]
    assert [(view.status, view.state) for view in ends] == [
        ("done", "completed"),
        ("failed", "failed"),
        ("cancelled", "cancelled"),
    ]
    assert (ends[0].progress, await done.result()) == (1.0, {"files": 3})
    assert (ends[1].message, ends[1].error and ends[1].error.code) == ("the disk is full", "task_failed")
    with pytest.raises(TaskFailed, match="the disk is full"):
        await failed.result()
    with pytest.raises(TaskCancelled):
        await cancelled.result()


async def test_k07_what_comes_after_the_end_is_refused_by_name(lab: Lab) -> None:
    """The first end stands; the same one again is no error, and an unknown id is not found."""
    task = await lab.crib.external("once").start()
    await task.complete(7)
    await task.complete(7)
    for late in (task.complete(8), task.fail("no"), task.cancel()):
        with pytest.raises(TaskEnded):
            await late
    again = lab.crib.external_task(task.id)
    await again.progress(0.5)
    with capture_logs() as logged, pytest.raises(TaskEnded):
        await again.flush()
    assert not [entry for entry in logged if entry.get("lease") == task.id]
    assert (await task.status()).result == 7
    unknown = lab.crib.external_task("task-nobody-knows")
    for call in (unknown.complete(), unknown.fail("no"), unknown.cancel(), unknown.status()):
        with pytest.raises(UnknownTask):
            await call


async def test_progress_that_cannot_be_passed_on_is_an_error(lab: Lab) -> None:
    """Whoever waits for it to be passed on is told that it was not; later progress is another matter."""
    crib = Toolcrib(losing(lab.client, LostAnswers("progress")))
    task = await crib.external("cut off").start()
    await task.progress(0.5)
    with pytest.raises(RPCError, match="connection reset"):
        await task.flush()
    await task.progress(0.6)
    await task.flush()
    await task.complete()


@pytest.mark.parametrize(
    ("value", "message", "field"),
    [(1.1, None, "progress"), (-0.1, None, "progress"), (float("nan"), None, "progress"), (0.5, "x" * 501, "message")],
)
async def test_k19_bad_progress_is_refused(lab: Lab, value: float, message: str | None, field: str) -> None:
    """Naming the field; the task is as it was."""
    task = await lab.crib.external("guarded").start()
    with pytest.raises(InvalidRequest, match=f"^{field}: "):
        await task.progress(value, message)
    assert (await task.status()).progress is None
    await task.cancel()


@pytest.mark.parametrize("fields", [{"name": ""}, {"name": "a\nb"}, {"name": "x" * 201}, {"name": "a", "pool": "a/b"}])
async def test_a_malformed_registration_creates_nothing(lab: Lab, fields: dict[str, Any]) -> None:
    """It is refused with the field's name, before anything is sent."""
    with pytest.raises(InvalidRequest):
        lab.crib.external(**fields)


@pytest.mark.parametrize("result", [{1, 2}, "x" * 300_000, float("nan"), "\ud800"])
async def test_a_result_that_cannot_be_kept_is_refused(lab: Lab, result: Any) -> None:
    """The task runs on."""
    task = await lab.crib.external("picky").start()
    with pytest.raises(InvalidRequest, match=r"^result: "):
        await task.complete(result)
    assert (await task.status()).state == "running"
    await task.cancel()


# ---- as a block


async def test_a_block_is_done_at_its_end(lab: Lab) -> None:
    """With the last progress passed on before."""
    async with lab.crib.external("block", group=Group("g", "a group")) as task:
        await task.progress(0.4, "half way")
        view = await until(task, lambda view: view.progress == 0.4)
        assert (view.group_id, view.group_name) == ("g", "a group")
    assert (await task.status()).status == "done"
    await eventually(lambda: lab.crib.tasks(group="g"), lambda found: [view.id for view in found] == [task.id])


async def test_a_block_that_raises_is_failed(lab: Lab) -> None:
    """With the words of its exception, which goes on to who called."""
    with pytest.raises(ValueError, match="no such folder"):
        async with lab.crib.external("raises") as task:
            raise ValueError("no such folder")
    view = await task.status()
    assert (view.status, view.message) == ("failed", "no such folder")


async def test_a_block_that_is_cancelled_cancels_its_task(lab: Lab) -> None:
    """So the task does not run for ever after its caller has gone."""
    begun: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        async with lab.crib.external("interrupted") as task:
            begun.set_result(task)
            await asyncio.Event().wait()

    working = asyncio.create_task(work())
    task = await begun
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert (await until(task, lambda view: view.ended)).status == "cancelled"


async def test_the_caller_learns_of_a_cancel(lab: Lab) -> None:
    """The block is interrupted where it waits, and raises that its task was cancelled."""
    handles: list[TaskHandle] = []

    async def work() -> None:
        async with lab.crib.external("called off") as task:
            handles.append(task)
            await lab.crib.task(task.id).cancel()
            async with asyncio.timeout(20):
                await asyncio.Event().wait()

    with pytest.raises(TaskCancelled):
        await work()
    assert (await handles[0].status()).status == "cancelled"


async def test_external_tasks_are_listed_with_the_others(lab: Lab) -> None:
    """By state and by pool, and not among the pool's queue."""
    crib = await lab.pool()
    task = await crib.external("listed").start()

    async def ids(**query: Any) -> list[str]:
        return [view.id for view in await crib.tasks(**query)]

    await eventually(lambda: ids(state="running", pool="lab"), lambda found: found == [task.id])
    assert await ids(state="pending") == []
    await until_pool(crib, lambda pool: pool.queued == 0 and pool.leased == 0)
    await task.complete()
    await eventually(lambda: ids(state="completed"), lambda found: found == [task.id])

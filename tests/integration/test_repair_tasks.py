"""Tasks that a person terminates, deletes or resets: what they held is taken back, and nothing runs twice."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowUpdateFailedError

from support.lab import Lab, eventually, slot, until, until_pool, until_status
from support.operator import delete, reset, reset_points, terminate, within_a_minute, workflow
from support.processes import toolcrib
from support.runners import CONTROLLED, controlled
from toolcrib.client import Group, NoConnection, TaskHandle, TaskView, Toolcrib
from toolcrib.scheduling.messages import Claim, Progress
from toolcrib.scheduling.names import SCHEDULED_TASK


async def claim(lab: Lab, task: TaskHandle, lease_id: str) -> None:
    """Claim a lease as its host would."""
    request = Claim(lease_id=lease_id, host_id="lab-1", claim_id=uuid.uuid4().hex)
    await workflow(lab, task.id).execute_update("claim", request)


async def test_scenario_s33_a_task_that_was_killed_gives_its_device_back(lab: Lab) -> None:
    """A running task is terminated or deleted: its work ends, then another gets the device, within a minute."""
    crib = await lab.pool(lease_ttl=6)
    async with lab.host(devices=[slot("a"), slot("b")], goal=CONTROLLED):
        killed = [await crib.submit(f"s33-{end}") for end in ("terminated", "deleted")]
        for task in killed:
            await until_status(task, "dispatched")
        for end in ("terminated", "deleted"):
            await controlled.context(f"s33-{end}")
        waiting = [await crib.submit(f"s33-after-{n}") for n in (1, 2)]
        await terminate(lab, killed[0].id)
        await delete(lab, killed[1].id)
        for n, task in enumerate(waiting, 1):
            await within_a_minute(task.status, lambda view: view.status == "dispatched")
            controlled.finish(f"s33-after-{n}")
            await task.result()
        assert {"s33-terminated", "s33-deleted"} <= set(controlled.cancelled)
        await until_pool(crib, lambda pool: pool.leased == 0 and {d.state for d in pool.devices} == {"idle"})


async def test_scenario_s51_a_task_that_was_killed_while_it_waited_leaves_the_queue(lab: Lab) -> None:
    """A queued task is terminated or deleted, however long it has waited: its place is free within a minute."""
    crib = await lab.pool()
    tasks = [await crib.submit(f"s51-{n}") for n in range(4)]
    await until_pool(crib, lambda pool: pool.queued == 4)
    await terminate(lab, tasks[1].id)
    await delete(lab, tasks[2].id)
    view = await within_a_minute(crib.pool().show, lambda pool: pool.queued == 2)
    assert [entry.id for entry in view.queue] == [tasks[0].id, tasks[3].id]


async def test_an_assigned_task_that_was_terminated_gives_its_device_back(lab: Lab) -> None:
    """A lease that nobody has claimed is taken back, too, and its host cannot claim it any more."""
    crib = await lab.pool(lease_ttl=3, claim_timeout=600)
    await lab.register_only()
    task, waits = await crib.submit("echo 1"), await crib.submit("echo 2")
    view = await until_status(task, "assigned")
    await terminate(lab, task.id)
    told = await task.status()
    assert (told.status, told.error and told.error.message) == ("failed", "its workflow was terminated: operator")
    assert [(one.outcome, one.reason) for one in told.attempts] == [("cancelled", told.message)]
    assert told.finished_at is not None
    assert told.attempts[0].ended_at == told.finished_at
    await within_a_minute(crib.pool().show, lambda pool: [device.task_id for device in pool.devices] == [waits.id])
    with pytest.raises(Exception, match=r"completed|not found"):
        await claim(lab, task, view.attempts[0].lease_id)


@pytest.mark.parametrize("point", ["first", "last"])
async def test_case_e03_a_task_that_is_reset_while_it_runs_begins_anew(lab: Lab, point: str) -> None:
    """Its new run gets a new lease when the old work has ended; the old one is refused, and its client waits on."""
    crib = await lab.pool(lease_ttl=6)
    goal = f"e03-{point}"
    async with lab.host(devices=[slot("a")], goal=CONTROLLED):
        task = await crib.submit(goal)
        old = (await until_status(task, "dispatched")).attempts[0].lease_id
        await controlled.context(goal)
        await workflow(lab, task.id).signal("progress", Progress(lease_id=old, value=0.5))
        await until(task, lambda view: view.progress == 0.5)
        waiting = asyncio.create_task(task.result())
        points = await reset_points(lab, task.id)
        await reset(lab, task.id, points[0] if point == "first" else points[-1])
        view = await until(task, lambda view: view.status == "dispatched" and view.attempts[-1].lease_id != old)
        assert goal in controlled.cancelled
        assert controlled.started(goal) == 2
        assert view.progress is None
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await claim(lab, task, old)
        assert getattr(refused.value.cause, "type", None) == "lease_superseded"
        await workflow(lab, task.id).signal("progress", Progress(lease_id=old, value=0.9))
        controlled.finish(goal, "new")
        assert await waiting == "new"
        view = await task.status()
        assert view.progress == 1.0
        assert [attempt.outcome for attempt in view.attempts if attempt.lease_id != old] == ["done"]
        await until_pool(crib, lambda pool: pool.leased == 0 and pool.devices[0].state == "idle")
        assert controlled.started(goal) == 2


async def test_case_e03_a_task_can_be_reset_again_and_again(lab: Lab) -> None:
    """Each run takes over from the one before, and only the last one's work is left."""
    crib = await lab.pool(lease_ttl=6)
    goal = "e03-again"
    async with lab.host(goal=CONTROLLED):
        task = await crib.submit(goal)
        leases = [(await until_status(task, "dispatched")).attempts[-1].lease_id]
        for resets in range(3):
            await _started(goal, resets + 1)
            await reset(lab, task.id, (await reset_points(lab, task.id))[-1])
            view = await within_a_minute(
                task.status,
                lambda view: view.status == "dispatched" and view.attempts[-1].lease_id not in leases,
            )
            leases.append(view.attempts[-1].lease_id)
        assert controlled.cancelled.count(goal) == 3
        controlled.finish(goal, "at last")
        assert await task.result() == "at last"
        view = await task.status()
        assert [attempt.outcome for attempt in view.attempts] == ["returned"] * 3 + ["done"]
        await until_pool(crib, lambda pool: pool.leased == 0 and pool.devices[0].state == "idle")


async def test_case_e03_a_task_that_is_reset_to_its_end_ends_as_it_did(lab: Lab) -> None:
    """What is on record before the point of the reset stands: the work is not done again."""
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED):
        controlled.finish("e03-end", "once")
        task = await crib.submit("e03-end")
        assert await task.result() == "once"
        await reset(lab, task.id, (await reset_points(lab, task.id))[-1])
        assert await task.result() == "once"
        assert (await task.status()).status == "done"
        assert controlled.started("e03-end") == 1
        await until_pool(crib, lambda pool: pool.leased == 0 and pool.devices[0].state == "idle")


async def test_case_e03_a_task_that_is_reset_to_its_start_after_its_end_runs_anew(lab: Lab) -> None:
    """It is admitted once more, with its first time of submission, and gets a lease of its own."""
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED):
        controlled.finish("e03-anew", "done")
        task = await crib.submit("e03-anew")
        await task.result()
        before = await task.status()
        await reset(lab, task.id, (await reset_points(lab, task.id))[0])
        assert await task.result() == "done"
        after = await task.status()
        assert controlled.started("e03-anew") == 2
        assert after.created_at == before.created_at
        assert after.attempts[-1].fencing > before.attempts[-1].fencing


async def test_case_e03_a_queued_task_that_is_reset_keeps_its_place(lab: Lab) -> None:
    """Nothing else happens to it; also if it is cancelled right afterwards. Lists and groups have it once."""
    crib = await lab.pool()
    tasks = [await crib.submit(f"e03-queued-{n}", group=Group("e03")) for n in range(3)]
    for task in tasks[:2]:
        await reset(lab, task.id, (await reset_points(lab, task.id))[0])
    await tasks[1].cancel()
    await until_status(tasks[1], "cancelled")
    pool = await until_pool(crib, lambda pool: pool.queued == 2)
    assert [entry.id for entry in pool.queue] == [tasks[0].id, tasks[2].id]

    async def runs() -> int:
        return (await lab.client.count_workflows(f"WorkflowType = '{SCHEDULED_TASK}'")).count

    await eventually(runs, lambda count: count == len(tasks) + 2)
    assert sorted(view.id for view in await crib.tasks(limit=len(tasks))) == sorted(task.id for task in tasks)
    assert (await crib.group("e03").show()).counts == {"pending": 2, "cancelled": 1}


async def test_case_e03_a_task_that_is_reset_and_cancelled_gives_its_device_back(lab: Lab) -> None:
    """Its work ends, and the next one gets the device only then."""
    crib = await lab.pool(lease_ttl=6)
    async with lab.host(goal=CONTROLLED):
        task = await crib.submit("e03-cancelled")
        await until_status(task, "dispatched")
        await controlled.context("e03-cancelled")
        waits = await crib.submit("e03-next")
        await reset(lab, task.id, (await reset_points(lab, task.id))[0])
        await task.cancel()
        await until_status(task, "cancelled")
        await within_a_minute(waits.status, lambda view: view.status == "dispatched")
        assert "e03-cancelled" in controlled.cancelled
        controlled.finish("e03-next")
        await waits.result()


async def test_case_e03_an_assigned_task_that_is_reset_gets_another_lease(lab: Lab) -> None:
    """The lease that nobody has claimed yet cannot be claimed any more."""
    crib = await lab.pool(lease_ttl=3, claim_timeout=600)
    await lab.register_only(devices=[slot("a"), slot("b")])
    task = await crib.submit("echo")
    old = (await until_status(task, "assigned")).attempts[-1].lease_id
    await reset(lab, task.id, (await reset_points(lab, task.id))[0])
    view = await within_a_minute(
        task.status, lambda view: view.status == "assigned" and view.attempts[-1].lease_id != old
    )
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await claim(lab, task, old)
    assert getattr(refused.value.cause, "type", None) == "lease_superseded"
    pool = await within_a_minute(crib.pool().show, lambda pool: pool.leased == 1)
    assert [device.lease_id for device in pool.devices if device.lease_id] == [view.attempts[-1].lease_id]


async def test_case_e03_a_reset_is_noticed_once_whoever_runs_the_task(client: Client, tmp_path: Path) -> None:
    """A scheduler that takes over a task that was reset goes on with it, and notices when it is reset again."""
    lab = Lab(client, Toolcrib(client), tmp_path / "hosts")
    scheduler, end = ("worker", "--role", "scheduler"), tmp_path / "end"
    async with toolcrib(client, tmp_path, *scheduler) as second, lab_of_its_own(lab):
        task = await lab.crib.submit(f"while [ ! -e {end} ]; do sleep 0.1; done", pool="lab")
        await until_status(task, "dispatched")
        await reset(lab, task.id, (await reset_points(lab, task.id))[-1])
        await within_a_minute(task.status, lambda view: len(view.attempts) == 2 and view.status == "dispatched")
        second.kill()
        async with toolcrib(client, tmp_path, *scheduler):
            await within_a_minute(lambda: answered(task), lambda view: view is not None)
            await reset(lab, task.id, (await reset_points(lab, task.id))[-1])
            await within_a_minute(task.status, lambda view: len(view.attempts) == 3 and view.status == "dispatched")
            end.touch()
            view = await within_a_minute(task.status, lambda view: view.status == "done")
    assert [attempt.outcome for attempt in view.attempts] == ["returned", "returned", "done"]


@asynccontextmanager
async def lab_of_its_own(lab: Lab) -> AsyncIterator[None]:
    """Have a host with one slot in pool `lab`, of a scheduler in a process of its own."""
    await until_pool(lab.crib, lambda pool: pool.name == "default")
    await lab.pool(lease_ttl=6)
    async with lab.host():
        yield


async def _started(goal: str, times: int) -> None:
    """Wait until the work has begun so often: a claimed lease may be reset before it does."""

    async def started() -> int:
        return controlled.started(goal)

    await eventually(started, lambda found: found == times)


async def answered(task: TaskHandle) -> TaskView | None:
    """Return the task's view; None if no scheduler answers yet."""
    try:
        return await task.status()
    except NoConnection:
        return None

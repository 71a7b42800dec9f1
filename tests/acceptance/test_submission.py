"""Submitting tasks: what is accepted, what is refused, and what the caller gets. Rows S1-01 to S1-12."""

from __future__ import annotations

import time

import pytest

from support.lab import Lab, eventually, slot, until_status
from support.runners import CONTROLLED, controlled
from toolcrib.client import QueueFull, TaskRequest


async def test_s1_01_a_goal_is_accepted(lab: Lab) -> None:
    """A submission with a goal string is accepted."""
    task = await lab.crib.submit("echo hello")
    assert (await task.status()).goal == "echo hello"


async def test_s1_02_a_workflow_reference_is_accepted(lab: Lab) -> None:
    """A submission with a workflow reference is accepted instead of a goal."""
    task = await lab.crib.submit(workflow="smoke@1", inputs={"build": 7})
    view = await task.status()
    assert (view.goal, view.workflow, view.inputs) == (None, "smoke@1", {"build": 7})


async def test_s1_03_a_driver_type_can_be_given(lab: Lab) -> None:
    """An optional driver type can be given, and is on the task."""
    plain, typed = await lab.crib.submit("echo a"), await lab.crib.submit("echo b", driver_type="adb")
    assert (await plain.status()).driver_type is None
    assert (await typed.status()).driver_type == "adb"


async def test_s1_04_tags_can_be_given(lab: Lab) -> None:
    """Optional required tags can be given, and are on the task."""
    plain, tagged = await lab.crib.submit("echo a"), await lab.crib.submit("echo b", tags=["usb", "linux"])
    assert (await plain.status()).tags == []
    assert (await tagged.status()).tags == ["linux", "usb"]


async def test_s1_05_a_new_task_is_queued(lab: Lab) -> None:
    """Without devices, a new task's status is queued."""
    task = await lab.crib.submit("echo hello")
    assert (await task.status()).status == "queued"


async def test_s1_06_ids_are_unique(lab: Lab) -> None:
    """A hundred submissions get a hundred ids."""
    tasks = await lab.crib.submit_many([TaskRequest(goal="echo hello")] * 100)
    assert len({task.id for task in tasks}) == 100


async def test_s1_07_the_id_stays_for_the_whole_life(lab: Lab) -> None:
    """One id finds the task when it is queued, when it runs, and when it has ended."""
    crib = await lab.pool()
    goal = "s1-07"
    task = await crib.submit(goal)
    queued = await task.status()
    async with lab.host(goal=CONTROLLED):
        running = await until_status(crib.task(task.id), "dispatched")
        controlled.finish(goal)
        await task.result()
        ended = await crib.task(task.id).status()
    assert [queued.status, running.status, ended.status] == ["queued", "dispatched", "done"]
    assert {queued.id, running.id, ended.id} == {task.id}


async def test_s1_08_submitting_does_not_wait_for_a_device(lab: Lab) -> None:
    """With no device in the pool, a submission returns in less than a second."""
    begin = time.monotonic()
    await lab.crib.submit("echo hello")
    assert time.monotonic() - begin < 1.0


async def test_s1_09_beyond_the_depth_a_submission_is_refused(lab: Lab) -> None:
    """With max_queue_depth tasks queued, the next submission is refused."""
    crib = await lab.pool(max_queue_depth=2)
    await crib.submit("echo 1")
    await crib.submit("echo 2")
    with pytest.raises(QueueFull):
        await crib.submit("echo 3")


async def test_s1_10_the_refusal_names_the_limit(lab: Lab) -> None:
    """The refusal is an error of its own type that names the pool and its limit."""
    crib = await lab.pool(max_queue_depth=1)
    await crib.submit("echo 1")
    with pytest.raises(QueueFull, match="pool 'lab' has 1 queued tasks, its limit is 1") as caught:
        await crib.submit("echo 2")
    assert caught.value.body.code == "queue_full"


async def test_s1_11_a_refused_submission_leaves_nothing_behind(lab: Lab) -> None:
    """After a refusal there is no workflow and no place in the queue for it."""
    crib = await lab.pool(max_queue_depth=1)
    first = await crib.submit("echo 1")
    with pytest.raises(QueueFull):
        await crib.submit("echo 2")
    await eventually(lambda: lab.client.count_workflows("WorkflowType = 'ScheduledTask'"), lambda n: n.count == 1)
    assert [entry.id for entry in (await crib.pool().show()).queue] == [first.id]


async def test_s1_12_only_queued_tasks_count(lab: Lab) -> None:
    """A task that has a device does not count towards the depth."""
    crib = await lab.pool(max_queue_depth=1)
    await lab.register_only(devices=[slot("a"), slot("b")])
    assigned = [await crib.submit("echo 1"), await crib.submit("echo 2")]
    await crib.submit("echo 3")
    with pytest.raises(QueueFull):
        await crib.submit("echo 4")
    assert [(await task.status()).status for task in assigned] == ["assigned", "assigned"]

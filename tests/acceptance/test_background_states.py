"""A task in the words of background tasks: its states and its view. Rows S2-01, S2-02, S2-05 to S2-08, S2-11, S2-12."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.service import RPCError

from support.lab import Lab, slot, until, until_status
from support.processes import command
from support.runners import CONTROLLED, controlled
from toolcrib.activities.context import RunFailed
from toolcrib.client import Group, TaskEnded, TaskHandle, TaskView
from toolcrib.scheduling.messages import Progress, Report, ReportOutcome
from toolcrib.workflows.contract import TASK_CLAIM, TASK_PROGRESS

STATES = {"pending", "running", "completed", "failed", "cancelled"}


async def test_s2_01_a_task_has_a_name(lab: Lab) -> None:
    """The one it was given, or else its goal; it stays over its whole life."""
    crib = await lab.pool()
    named, plain = await crib.submit("s2-01-a", name="nightly import"), await crib.submit("s2-01-b")
    async with lab.host(goal=CONTROLLED, devices=[slot("a"), slot("b")]):
        for task, name in ((named, "nightly import"), (plain, "s2-01-b")):
            assert (await task.status()).name == name
            controlled.finish((await task.status()).goal or "")
            await task.result()
            assert (await task.status()).name == name


async def test_s2_02_s2_05_s2_06_s2_07_pending_becomes_running_and_that_ends_in_three_ways(lab: Lab) -> None:
    """Completed, failed or cancelled, and there are no other states; when it was created never changes."""
    crib = await lab.pool()
    goals = {"completed": "s2-07-a", "failed": "s2-07-b", "cancelled": "s2-07-c"}
    tasks = {end: await crib.submit(goal) for end, goal in goals.items()}
    seen = [await task.status() for task in tasks.values()]
    created = [view.created_at for view in seen]
    assert {view.state for view in seen} == {"pending"}
    async with lab.host(goal=CONTROLLED, devices=[slot("a"), slot("b"), slot("c")]):
        running = [await until_status(task, "dispatched") for task in tasks.values()]
        assert {view.state for view in running} == {"running"}
        assert [view.created_at for view in running] == created
        controlled.finish(goals["completed"])
        controlled.fail(goals["failed"], RunFailed("broken"))
        await tasks["cancelled"].cancel()
        ends = [await until(task, lambda view: view.ended) for task in tasks.values()]
    assert [view.state for view in ends] == list(tasks)
    assert [view.created_at for view in ends] == created
    assert {view.state for view in (*seen, *running, *ends)} <= STATES


async def _report_and_claim(lab: Lab, task: TaskHandle, lease_id: str) -> None:
    """Say to a task what a runtime can, about a lease that is not its current one; refusals are as good as silence."""
    workflow: Any = lab.client.get_workflow_handle(task.id)
    with suppress(RPCError):
        await workflow.signal(TASK_PROGRESS, Progress(lease_id=lease_id, value=0.7, message="stolen"))
    with suppress(RPCError, WorkflowUpdateFailedError):
        await workflow.execute_update(TASK_CLAIM, lab.key().claim(lease_id, "c", 1, "here"))
    forged = lab.key().signed_report(Report(lease_id=lease_id, outcome=ReportOutcome.DONE, result="stolen"))
    with suppress(RPCError):
        await lab.client.get_async_activity_handle(workflow_id=task.id, run_id=None, activity_id="0").complete(forged)


async def test_s2_08_no_word_moves_a_task_that_it_is_not_about(lab: Lab) -> None:
    """Pending, running and at each end: what a runtime says of another lease, or after the end, changes nothing."""
    crib = await lab.pool()
    tasks = {end: await crib.submit(f"s2-08-{end}") for end in ("done", "failed", "cancelled")}
    for task in tasks.values():
        await _stays_as_it_is(lab, task, f"{task.id}.1.1")
    async with lab.host(goal=CONTROLLED, devices=[slot("a"), slot("b"), slot("c")]):
        leases = {}
        for end, task in tasks.items():
            view = await until_status(task, "dispatched")
            leases[end] = view.attempts[0].lease_id
            await controlled.context(f"s2-08-{end}")
            await _stays_as_it_is(lab, task, f"{task.id}.1.999")
        controlled.finish("s2-08-done", "mine")
        controlled.fail("s2-08-failed", RunFailed("broken"))
        await tasks["cancelled"].cancel()
        for end, task in tasks.items():
            await until_status(task, end)
            await _stays_as_it_is(lab, task, leases[end])
    for end in ("done", "failed"):
        with pytest.raises(TaskEnded):
            await tasks[end].cancel()
        assert (await tasks[end].status()).status == end


async def _stays_as_it_is(lab: Lab, task: TaskHandle, lease_id: str) -> None:
    def told(view: TaskView) -> TaskView:
        return view.model_copy(update={"pending_reason": None})

    before = await task.status()
    await _report_and_claim(lab, task, lease_id)
    assert told(await task.status()) == told(before)


async def test_s2_11_s2_12_the_view_has_what_is_set(lab: Lab, tmp_path: Path) -> None:
    """Name, state and time of creation always; progress, message and group if they were set. As JSON of the CLI."""
    crib = await lab.pool()
    plain = await crib.submit("s2-12-plain")
    full = await crib.submit("s2-12-full", group=Group("g", "a group"))
    async with lab.host(goal=CONTROLLED, devices=[slot("a"), slot("b")]):
        (await controlled.context("s2-12-full")).progress(0.5, "half")
        await until(full, lambda view: view.progress == 0.5)
        await until_status(plain, "dispatched")
        code, said = await command(lab.client, tmp_path, "list", "--state", "running", "-o", "json")
        assert code == 0, said
        views = {view["id"]: view for view in json.loads(said)}
        for view in views.values():
            assert {"name", "status", "state", "created_at"} <= set(view)
        optional = ("progress", "message", "group_id", "group_name")
        assert [name for name in optional if name in views[plain.id]] == []
        assert [views[full.id][name] for name in optional] == [0.5, "half", "g", "a group"]
        controlled.finish("s2-12-plain")
        controlled.finish("s2-12-full")
        await plain.result()
        await full.result()

"""How it is built on Temporal. Rows C-01 to C-08."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType, TaskQueueType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import WorkflowExecutionStatus

from support.lab import Lab, eventually, slot, until, until_status
from support.processes import host_file, stopped, toolcrib
from support.runners import REPORTING
from toolcrib.client import TaskFailed

ROOT = Path(__file__).parents[2]


async def history(lab: Lab, workflow_id: str) -> list[HistoryEvent]:
    """Return a workflow's events."""
    return [event async for event in lab.client.get_workflow_handle(workflow_id).fetch_history_events()]


async def pollers(lab: Lab, queue: str) -> int:
    """Return how many workers poll a queue for activities, as Temporal knows."""
    request = DescribeTaskQueueRequest(
        namespace=lab.client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
    )
    return len((await lab.client.workflow_service.describe_task_queue(request)).pollers)


async def test_c_01_a_task_is_one_workflow(lab: Lab) -> None:
    """Temporal lists one workflow by the task's id, and it ends as the task does."""
    crib = await lab.pool()
    async with lab.host():
        done, failed = await crib.submit("true"), await crib.submit("false")
        await until_status(done, "done")
        await until_status(failed, "failed")
    described = [await lab.client.get_workflow_handle(task.id).describe() for task in (done, failed)]
    assert [one.workflow_type for one in described] == ["ScheduledTask"] * 2
    assert [one.status for one in described] == [WorkflowExecutionStatus.COMPLETED, WorkflowExecutionStatus.FAILED]


async def test_c_02_one_entity_serialises_assignment(lab: Lab) -> None:
    """A pool is one workflow that runs on: all of its tasks are admitted and released by its messages."""
    crib = await lab.pool()
    async with lab.host():
        await (await crib.submit("true")).result()
    found = await lab.client.get_workflow_handle("toolcrib-pool-lab").describe()
    assert (found.workflow_type, found.status) == ("DevicePool", WorkflowExecutionStatus.RUNNING)
    updates = [
        e for e in await history(lab, found.id) if e.HasField("workflow_execution_update_accepted_event_attributes")
    ]
    names = [e.workflow_execution_update_accepted_event_attributes.accepted_request.input.name for e in updates]
    assert "admit" in names


async def test_c_03_each_host_has_a_queue_and_a_worker(lab: Lab, tmp_path: Path) -> None:
    """Each host's queue has its own worker; when that stops, the other host goes on."""
    crib = await lab.pool()
    async with lab.host("b", [slot(tags=["b"])]):
        file = host_file(tmp_path, "a", [slot(tags=["a"])])
        async with toolcrib(lab.client, tmp_path, "worker", "--role", "host", "--config", str(file)) as worker:
            task = await crib.submit("true", tags=["a"])
            assert (await until_status(task, "done")).host_id == "a"
            assert [await pollers(lab, "toolcrib-host-a"), await pollers(lab, "toolcrib-host-b")] == [1, 1]
            assert await stopped(worker) == 0
        await until_status(await crib.submit("true", tags=["b"]), "done")


async def test_c_04_the_lease_is_the_activitys_timeouts(lab: Lab) -> None:
    """The claim window is the activity's schedule-to-start timeout, and the lease ttl its heartbeat timeout."""
    crib = await lab.pool(claim_timeout=20, lease_ttl=7)
    async with lab.host():
        task = await crib.submit("true")
        await task.result()
    (scheduled,) = [
        event.activity_task_scheduled_event_attributes
        for event in await history(lab, task.id)
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ]
    assert scheduled.task_queue.name == "toolcrib-host-lab-1"
    assert 19 < scheduled.schedule_to_start_timeout.ToTimedelta().total_seconds() <= 20
    assert scheduled.heartbeat_timeout.ToTimedelta().total_seconds() == 7
    assert scheduled.retry_policy.maximum_attempts == 1


async def test_c_05_a_setting_caps_the_attempts(lab: Lab) -> None:
    """With two attempts allowed, a task whose leases expire is tried twice, by two activities of one try each."""
    crib = await lab.pool(claim_timeout=1, lease_ttl=3, max_attempts=2)
    await lab.register_only()
    task = await crib.submit("echo")
    with pytest.raises(TaskFailed, match="attempt 2 of 2"):
        await task.result()
    kinds = [event.event_type for event in await history(lab, task.id)]
    assert kinds.count(EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED) == 2


async def test_c_06_progress_travels_by_signals(lab: Lab) -> None:
    """A runner's progress reaches the task as signals, a few of many, and the last one always."""
    crib = await lab.pool()
    async with lab.host(goal=REPORTING):
        task = await crib.submit("c-06", name="reporting")
        await task.result()
    signals = [
        event.workflow_execution_signaled_event_attributes.signal_name
        for event in await history(lab, task.id)
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED
    ]
    assert signals in (["progress"], ["progress"] * 2)
    view = await task.status()
    assert (view.progress, view.message) == (1.0, "step 20 of c-06")


async def test_c_07_the_status_is_in_the_web_ui(lab: Lab) -> None:
    """What the Web UI shows and filters by: search attributes, a summary, and live details."""
    crib = await lab.pool()
    async with lab.host():
        task = await crib.submit("true", name="nightly")
        await task.result()
        query = "ToolcribStatus = 'done' AND ToolcribPool = 'lab' AND ToolcribDevice = 'lab-1/slot-1'"
        await eventually(lambda: lab.client.count_workflows(query), lambda found: found.count == 1)
        running = await crib.submit("sleep 30", name="soak")
        await until(running, lambda view: view.status == "dispatched")
        described = await lab.client.get_workflow_handle(running.id).describe()
        assert await described.static_summary() == "soak"
        details = await _details(lab, running.id)
        assert "dispatched" in details
        assert "lab-1/slot-1" in details
        assert "leased 1" in await _details(lab, "toolcrib-pool-lab")
        await running.cancel()


def test_c_08_the_layout_is_the_customers() -> None:
    """The folders and packages that the customer asked for are there."""
    for name in ("pyproject.toml", "README.md", "workflows", "activities", "worker", "client", "tests"):
        assert (ROOT / name).exists(), name
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
    for package in ("temporalio", "pydantic", "pytest", "pytest-asyncio"):
        assert any(requirement.startswith(package + ">=") for requirement in wanted), package


async def _details(lab: Lab, workflow_id: str) -> str:
    """Return what the Web UI shows as a workflow's current details."""
    from temporalio.api.sdk.v1 import WorkflowMetadata

    found: WorkflowMetadata = await lab.client.get_workflow_handle(workflow_id).query(
        "__temporal_workflow_metadata", result_type=WorkflowMetadata
    )
    return found.current_details

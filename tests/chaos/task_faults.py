"""What people do to tasks that are under way."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.client import WorkflowExecution as Found

from chaos.plan import Fault
from chaos.site import Site
from chaos.target import Note, target_of
from chaos.verdict import OPERATOR

CALL: Final = timedelta(seconds=5)
"""Patience with the server, which may be down."""


async def terminate(site: Site, fault: Fault, note: Note) -> None:
    """Terminate a task, which then says nothing to its pool."""
    if (task := await _open_task(site.client, fault)) is not None:
        await site.client.get_workflow_handle(task.id).terminate(reason=OPERATOR, rpc_timeout=CALL)
        note(task.id, _device(task))


async def cancel(site: Site, fault: Fault, note: Note) -> None:
    """Cancel a task."""
    if (task := await _open_task(site.client, fault)) is not None:
        await site.client.get_workflow_handle(task.id).cancel(rpc_timeout=CALL)
        note(task.id, _device(task))


async def reset(site: Site, fault: Fault, note: Note) -> None:
    """Send a task back to any of the points that a person could name."""
    if (task := await _open_task(site.client, fault)) is None:
        return
    history = await site.client.get_workflow_handle(task.id, run_id=task.run_id).fetch_history()
    points = [e.event_id for e in history.events if e.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED]
    if not points:
        return
    await site.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=site.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=task.id, run_id=task.run_id),
            workflow_task_finish_event_id=points[int(fault.target * 1000) % len(points)],
            request_id=uuid.uuid4().hex,
            reason="chaos",
        ),
        timeout=CALL,
    )
    note(task.id, _device(task))


async def _open_task(client: Client, fault: Fault) -> Found | None:
    """Return a task that has not ended, rather one that runs on a device."""
    running = "WorkflowType = 'ScheduledTask' AND ExecutionStatus = 'Running'"
    for query in (f"{running} AND ToolcribStatus = 'dispatched'", running):
        found = [task async for task in client.list_workflows(query, rpc_timeout=CALL)]
        if found:
            return target_of(fault, sorted(found, key=lambda task: task.id))
    return None


def _device(task: Found) -> tuple[str, ...]:
    values = task.search_attributes.get("ToolcribDevice", ())
    return tuple(str(value) for value in values)

"""What operators do to workflows behind toolcrib's back, from Temporal's Web UI or command line."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest, ResetWorkflowExecutionRequest
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from support.lab import Lab

Answer = TypeVar("Answer")

MINUTE = 60.0
"""Seconds within which whatever an operator did is repaired."""


def workflow(lab: Lab, workflow_id: str) -> WorkflowHandle[Any, Any]:
    """Return a handle on the newest run of a workflow."""
    return lab.client.get_workflow_handle(workflow_id)


async def terminate(lab: Lab, workflow_id: str) -> None:
    """Terminate a workflow, as `temporal workflow terminate` does."""
    await workflow(lab, workflow_id).terminate(reason="operator")


async def delete(lab: Lab, workflow_id: str) -> None:
    """Delete a workflow, as `temporal workflow delete` does, and wait until it is gone."""
    execution = WorkflowExecution(workflow_id=workflow_id)
    request = DeleteWorkflowExecutionRequest(namespace=lab.client.namespace, workflow_execution=execution)
    await lab.client.workflow_service.delete_workflow_execution(request)
    async with asyncio.timeout(MINUTE):
        while True:
            try:
                await workflow(lab, workflow_id).describe()
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return
                raise
            await asyncio.sleep(0.05)


async def reset(lab: Lab, workflow_id: str, event_id: int) -> None:
    """Reset a workflow to an event, as `temporal workflow reset` does."""
    found = await workflow(lab, workflow_id).describe()
    await lab.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=lab.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=found.run_id),
            reason="operator",
            request_id=uuid.uuid4().hex,
            workflow_task_finish_event_id=event_id,
        )
    )


async def reset_points(lab: Lab, workflow_id: str) -> list[int]:
    """Return the events to which a workflow can be reset: those at which a workflow task was completed."""
    history = await workflow(lab, workflow_id).fetch_history()
    return [event.event_id for event in history.events if event.HasField("workflow_task_completed_event_attributes")]


async def within_a_minute(ask: Callable[[], Awaitable[Answer]], fits: Callable[[Answer], bool]) -> Answer:
    """Ask until the answer `fits`, for as long as a repair may take."""
    async with asyncio.timeout(MINUTE):
        while not fits(answer := await ask()):
            await asyncio.sleep(0.2)
    return answer

"""How a host gets the work of a lease: the one way to a task's goal and inputs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from temporalio.client import (
    Client,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.activities.retrying import is_unanswered, retried
from toolcrib.scheduling.errors import TaskEnded
from toolcrib.scheduling.messages import Assignment, Claim
from toolcrib.workflows.contract import TASK_CLAIM
from toolcrib.workflows.failures import refusal_in

RPC_TIMEOUT: Final = timedelta(seconds=10)


async def claim(client: Client, task_id: str, request: Claim, patience: float) -> Assignment:
    """Claim a lease of a task, asking again with the same id for up to `patience` seconds while no answer comes.

    Raises:
        ClaimRefused: by name, as `TaskRecord.check_claim`.
        RPCError: no answer came.
    """
    return await retried(lambda: _ask(client, task_id, request), is_unanswered, patience=patience, longest_pause=1.0)


async def _ask(client: Client, task_id: str, request: Claim) -> Assignment:
    task: WorkflowHandle[Any, Any] = client.get_workflow_handle(task_id)
    try:
        answer: Assignment = await task.execute_update(
            TASK_CLAIM, request, id=request.claim_id, result_type=Assignment, rpc_timeout=RPC_TIMEOUT
        )
    except WorkflowUpdateFailedError as error:
        if (refusal := refusal_in(error)) is None:
            raise
        raise refusal from None
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise TaskEnded(f"task {task_id} no longer runs") from None
        raise
    return answer

"""How a task ended whose workflow was ended from outside: it could not write that down itself."""

from __future__ import annotations

from typing import Any, Final

from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowHistoryEventFilterType,
)

from toolcrib.scheduling.errors import ErrorBody
from toolcrib.scheduling.views import TaskView

CUT_SHORT: Final = {
    WorkflowExecutionStatus.TERMINATED: "its workflow was terminated",
    WorkflowExecutionStatus.TIMED_OUT: "its workflow timed out",
}


async def cut_short(client: Client, view: TaskView, found: WorkflowExecutionDescription) -> TaskView:
    """Return a task whose last words are `view` as it was ended: failed, with the reason that its operator gave."""
    assert found.status is not None
    message = CUT_SHORT[found.status]
    if given := await _reason(client, found):
        message += f": {given}"
    ended = {"outcome": "cancelled", "reason": message, "ended_at": found.close_time}
    attempts = [one.model_copy(update=ended) if one.outcome is None else one for one in view.attempts]
    error = ErrorBody(code="terminated", message=message, hint="Submit it again if it is still wanted.")
    changes: dict[str, Any] = {"status": "failed", "state": "failed", "error": error, "message": message}
    return view.model_copy(update={**changes, "attempts": attempts, "finished_at": found.close_time})


async def _reason(client: Client, found: WorkflowExecutionDescription) -> str:
    last = client.get_workflow_handle(found.id, run_id=found.run_id).fetch_history_events(
        event_filter_type=WorkflowHistoryEventFilterType.CLOSE_EVENT
    )
    async for event in last:
        return event.workflow_execution_terminated_event_attributes.reason
    return ""

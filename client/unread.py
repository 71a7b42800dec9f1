"""What Temporal itself knows of a task whose workflow cannot be asked."""

from __future__ import annotations

from typing import Any

from temporalio.client import Client, WorkflowExecutionDescription
from temporalio.common import SearchAttributeKey

from toolcrib.scheduling.errors import InvalidRequest, ToolcribError
from toolcrib.scheduling.request import TaskRequest, parse_request
from toolcrib.scheduling.task import TaskRecord
from toolcrib.scheduling.task_view import task_view
from toolcrib.scheduling.views import STATE_OF, TaskView


async def unread_view(client: Client, found: WorkflowExecutionDescription, fault: ToolcribError) -> TaskView:
    """Return a task as it was submitted, with the status and device that it showed last, and `fault` as its error."""
    record = TaskRecord(found.id, await _request(client, found), found.start_time.timestamp())
    status = _shown(found, "ToolcribStatus") or record.status.value
    device = _shown(found, "ToolcribDevice")
    changes: dict[str, Any] = {
        "status": status,
        "state": STATE_OF[status],
        "host_id": _shown(found, "ToolcribHost") or record.request.host_id,
        "device_id": device.rpartition("/")[2] if device else record.request.device_id,
        "error": fault.body,
        "message": fault.message,
    }
    return task_view(record).model_copy(update=changes)


async def _request(client: Client, found: WorkflowExecutionDescription) -> TaskRequest:
    """Return what the task was started with."""
    history = client.get_workflow_handle(found.id, run_id=found.run_id).fetch_history_events(page_size=1)
    async for event in history:
        payloads = event.workflow_execution_started_event_attributes.input.payloads
        try:
            return parse_request((await client.data_converter.decode(payloads))[0])
        except (InvalidRequest, IndexError):
            break
    return TaskRequest.model_construct()


def _shown(found: WorkflowExecutionDescription, name: str) -> str | None:
    return found.typed_search_attributes.get(SearchAttributeKey.for_keyword(name))

"""How the end of a lease is reported: acknowledged by the server, or else asked after."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import structlog
from temporalio.client import AsyncActivityHandle, Client, WorkflowHandle, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.activities.retrying import retried
from toolcrib.scheduling.errors import ErrorBody
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import Report
from toolcrib.workflows.contract import TASK_ON_RECORD

TIMEOUT: Final = timedelta(seconds=5)
LONGEST_PAUSE: Final = 2.0

_log = structlog.get_logger(__name__)


async def deliver(client: Client, handle: AsyncActivityHandle, lease: Lease, report: Report) -> None:
    """Bring a report to the server, for as long as the lease can live.

    What is on record stands: a report that comes too late changes nothing.
    """
    try:
        await retried(
            lambda: handle.complete(report, rpc_timeout=TIMEOUT),
            _may_pass,
            patience=lease.ttl,
            longest_pause=LONGEST_PAUSE,
        )
    except RPCError:
        await _ask_what_is_on_record(client, lease.task_id, report)


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, RPCError) and error.status is not RPCStatusCode.NOT_FOUND


_ANSWER: Any = ErrorBody | None


async def _ask_what_is_on_record(client: Client, task_id: str, report: Report) -> None:
    task: WorkflowHandle[Any, Any] = client.get_workflow_handle(task_id)
    try:
        found = await task.query(TASK_ON_RECORD, report, result_type=_ANSWER, rpc_timeout=TIMEOUT)
    except (RPCError, WorkflowQueryFailedError) as error:
        _log.error("report not delivered, and its task does not answer", lease=report.lease_id, reason=str(error))
        return
    if found is None:
        _log.info("the report is on record, or its lease will expire", lease=report.lease_id)
    else:
        _log.warning("report refused", lease=report.lease_id, code=found.code, reason=found.message)

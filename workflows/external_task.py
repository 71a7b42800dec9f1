"""ExternalTask: a task whose life its caller drives."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from temporalio import workflow
from temporalio.common import SearchAttributeKey

from toolcrib.scheduling.errors import InvalidRequest, TaskEnded
from toolcrib.scheduling.external import (
    CARRIED,
    ExternalEnd,
    ExternalRecord,
    ExternalRequest,
    checked_end,
    parse_external,
)
from toolcrib.scheduling.messages import Progress
from toolcrib.scheduling.names import EXTERNAL_TASK
from toolcrib.scheduling.task import Status
from toolcrib.scheduling.views import TaskView
from toolcrib.workflows.contract import EXTERNAL_END, TASK_PROGRESS, TASK_VIEW
from toolcrib.workflows.failures import to_failure, told_as_failures

MAX_SIGNALS: Final = 8_000
"""Of the 10,000 signals that one run may get."""

_STATUS: Final = SearchAttributeKey.for_keyword("ToolcribStatus")
_POOL: Final = SearchAttributeKey.for_keyword("ToolcribPool")
_GROUP: Final = SearchAttributeKey.for_keyword("ToolcribGroup")


@workflow.defn(name=EXTERNAL_TASK)
class ExternalTask:
    """Runs until its caller ends it, or somebody cancels it: without device, queue, cap or time limit.

    `request` is a JSON object with the fields of `ExternalRequest`, `carried` the record of the run before this one.
    """

    @workflow.init
    def __init__(self, request: Any = None, carried: Any = None) -> None:
        self._signals = 0
        self._fault: InvalidRequest | None = None
        if carried is not None:
            self._record = CARRIED.validate_python(carried)
            return
        try:
            parsed = parse_external(request)
        except InvalidRequest as fault:
            self._fault, parsed = fault, ExternalRequest(name="invalid")
        self._record = ExternalRecord(task_id=workflow.info().workflow_id, request=parsed, created_at=workflow.time())

    @workflow.run
    async def run(self, request: Any = None, carried: Any = None) -> Any:
        """Return the result that its caller gave; fail or be cancelled as the task does."""
        record = self._record
        if self._fault is not None:
            record.fail(self._fault.body, workflow.time())
        if carried is None:
            self._publish()
        try:
            await workflow.wait_condition(lambda: record.ended or self._run_is_full())
        except asyncio.CancelledError:
            record.cancel(workflow.time())
        await workflow.wait_condition(workflow.all_handlers_finished)
        if not record.ended:
            workflow.continue_as_new(args=[None, CARRIED.dump_python(record, mode="json")])
        self._publish()
        if record.status is Status.CANCELLED:
            raise asyncio.CancelledError
        if record.error is not None:
            raise to_failure(record.error)
        return record.result

    @workflow.query(name=TASK_VIEW)
    def view(self) -> TaskView:
        """Return the task as people see it."""
        return self._record.view

    @workflow.signal(name=TASK_PROGRESS)
    def progress(self, report: Progress) -> None:
        """Take note of how far it is."""
        self._signals += 1
        self._record.progressed(report)
        workflow.set_current_details(self._record.details)

    @workflow.update(name=EXTERNAL_END)
    def end(self, end: ExternalEnd) -> None:
        """End it as its caller says."""
        self._record.end(end, workflow.time())

    @end.validator
    def check_end(self, end: ExternalEnd) -> None:
        """Refuse what cannot be kept, and a second end."""
        with told_as_failures():
            checked_end(end)
            if self._record.ended:
                raise TaskEnded(f"task {self._record.task_id} has ended: {self._record.status}")

    def _run_is_full(self) -> bool:
        return workflow.info().is_continue_as_new_suggested() or self._signals >= MAX_SIGNALS

    def _publish(self) -> None:
        record = self._record
        attributes = [_STATUS.value_set(record.status), _POOL.value_set(record.request.pool)]
        if record.request.group_id is not None:
            attributes.append(_GROUP.value_set(record.request.group_id))
        workflow.upsert_search_attributes(attributes)
        workflow.set_current_details(record.details)

"""Tasks that run elsewhere, and whose caller says how they go."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import Any, Final

import uuid_utils
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.activities.progress import ProgressReporter
from toolcrib.client.patience import patiently
from toolcrib.client.task import TaskHandle
from toolcrib.scheduling.errors import TaskCancelled, TaskEnded, TaskFailed, UnknownTask
from toolcrib.scheduling.external import MAX_ERROR_LENGTH, ExternalEnd, ExternalRequest, checked_end
from toolcrib.scheduling.messages import Progress
from toolcrib.scheduling.names import EXTERNAL_TASK, TASKS_QUEUE
from toolcrib.scheduling.views import TaskView
from toolcrib.workflows.contract import EXTERNAL_END, TASK_PROGRESS
from toolcrib.workflows.failures import refusal_in

TIMEOUT: Final = timedelta(seconds=10)


class ExternalHandle(TaskHandle):
    """One external task, by its id: what may be said of it, from whatever process."""

    def __init__(self, client: Client, task_id: str) -> None:
        super().__init__(client, task_id)
        self._over = False
        self._fault: RPCError | None = None
        self._reporter = ProgressReporter(task_id, self._send)

    async def progress(self, value: float, message: str | None = None) -> None:
        """Say how far it is, from 0 to 1, as often as you like: a few times a second it is passed on.

        Raises:
            InvalidRequest: the value or the message is outside its limits.
            TaskEnded: it has ended, also if somebody else ended it.
            UnknownTask: there is no such task.
        """
        await self._check_open()
        self._reporter.report(value, message)

    async def flush(self) -> None:
        """Wait until the last progress has been passed on.

        Raises:
            TaskEnded, UnknownTask: as `progress`.
            temporalio.service.RPCError: it could not be passed on.
        """
        await self._reporter.flush()
        await self._check_open()
        if self._fault is not None:
            raise self._fault

    async def complete(self, result: Any = None) -> None:
        """End it as done, with a JSON value as its result.

        Raises:
            InvalidRequest: the result is not JSON or too large.
            TaskEnded: it has ended otherwise; saying the same again is no error.
            UnknownTask: there is no such task.
        """
        await self._end(ExternalEnd(outcome="done", result=result))

    async def fail(self, message: str) -> None:
        """End it as failed, with the reason.

        Raises:
            InvalidRequest: the message cannot be kept.
            TaskEnded: it has ended otherwise; saying the same again is no error.
            UnknownTask: there is no such task.
        """
        await self._end(ExternalEnd(outcome="failed", message=message))

    async def _end(self, end: ExternalEnd) -> None:
        checked_end(end)
        await self._reporter.flush()
        try:
            await patiently(lambda: self._handle.execute_update(EXTERNAL_END, end, rpc_timeout=TIMEOUT))
        except WorkflowUpdateFailedError as error:
            refusal = refusal_in(error)
            if not isinstance(refusal, TaskEnded):
                raise (refusal or error) from None
            await self._check_ended_so(end)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            await self._check_ended_so(end)

    async def _check_ended_so(self, end: ExternalEnd) -> None:
        view = await self.status()
        said = view.error.message if view.error else None
        if (view.status, view.result, said) != (end.outcome, end.result, end.message):
            raise self._ended(view)

    async def _send(self, report: Progress) -> None:
        """Pass on a report. One that comes after the end is dealt with here: the next call raises that it has ended."""
        self._fault = None
        try:
            await self._handle.signal(TASK_PROGRESS, report, rpc_timeout=TIMEOUT)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                self._fault = error
                raise
            self._over = True

    async def _check_open(self) -> None:
        if self._over:
            raise self._ended(await self.status())

    def _ended(self, view: TaskView) -> TaskEnded:
        return TaskEnded(f"task {self.id} has ended: {view.status}", hint=f"See: toolcrib status {self.id}")


class ExternalTask:
    """A block of code as an external task: done at its end, failed by an exception, cancelled by a cancellation.

    If somebody else cancels the task, the block is cancelled, and raises `TaskCancelled`.
    """

    def __init__(self, client: Client, request: ExternalRequest) -> None:
        self._client = client
        self._request = request
        self._watching: asyncio.Task[None] | None = None
        self._cancelled_from_outside = False

    async def start(self) -> ExternalHandle:
        """Register the task, which is running from then on, and return its handle."""
        task_id = f"task-{uuid_utils.uuid7()}"
        await patiently(lambda: self._start(task_id))
        return ExternalHandle(self._client, task_id)

    async def __aenter__(self) -> ExternalHandle:
        self._handle = await self.start()
        body = asyncio.current_task()
        assert body is not None
        self._body = body
        self._watching = asyncio.create_task(self._watch())
        return self._handle

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._watching is not None:
            self._watching.cancel()
        if self._cancelled_from_outside:
            self._body.uncancel()
            raise TaskCancelled(f"task {self._handle.id} was cancelled") from None
        if isinstance(error, asyncio.CancelledError):
            await asyncio.shield(self._handle.cancel())
        elif isinstance(error, Exception):
            with suppress(TaskEnded):
                await self._handle.fail((str(error) or type(error).__name__)[:MAX_ERROR_LENGTH])
        elif error is None:
            await self._complete()
        return False

    async def _complete(self) -> None:
        """End the task as done, unless the block did so itself, or somebody else did otherwise."""
        view = await self._handle.status()
        if view.status == "cancelled":
            raise TaskCancelled(f"task {self._handle.id} was cancelled")
        if not view.ended:
            await self._handle.complete()

    async def _watch(self) -> None:
        """Cancel the block when the task is cancelled."""
        try:
            await self._handle.result()
        except TaskCancelled:
            self._cancelled_from_outside = True
            self._body.cancel()
        except (TaskFailed, UnknownTask):
            return

    async def _start(self, task_id: str) -> None:
        request = self._request
        values = {"ToolcribPool": request.pool, "ToolcribStatus": "dispatched", "ToolcribGroup": request.group_id}
        attributes = [
            SearchAttributePair(SearchAttributeKey.for_keyword(name), value) for name, value in values.items() if value
        ]
        try:
            await self._client.start_workflow(
                EXTERNAL_TASK,
                request.model_dump(exclude_defaults=True),
                id=task_id,
                task_queue=TASKS_QUEUE,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                search_attributes=TypedSearchAttributes(attributes),
                static_summary=request.name,
            )
        except WorkflowAlreadyStartedError:
            return  # by an earlier try, whose answer was lost

"""A handle on one task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, Final

from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
)
from temporalio.common import QueryRejectCondition
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.client.cancellation import until_cancelled
from toolcrib.client.patience import patiently
from toolcrib.client.unread import unread_view
from toolcrib.scheduling.errors import (
    CannotReplay,
    ErrorBody,
    NoConnection,
    TaskCancelled,
    TaskEnded,
    TaskFailed,
    UnknownPool,
    UnknownTask,
)
from toolcrib.scheduling.names import EXTERNAL_TASK, SCHEDULED_TASK, pool_workflow_id
from toolcrib.scheduling.views import PendingReason, TaskView
from toolcrib.workflows.contract import POOL_REASONS, TASK_VIEW
from toolcrib.workflows.failures import cannot_replay

ANSWER_WITHIN: Final = 10.0
QUERY_TIMEOUT: Final = timedelta(seconds=ANSWER_WITHIN)
WATCH_INTERVAL: Final = 0.5
"""Seconds."""
_CUT_SHORT: Final = {
    WorkflowExecutionStatus.TERMINATED: "its workflow was terminated",
    WorkflowExecutionStatus.TIMED_OUT: "its workflow timed out",
}


class TaskHandle:
    """One task, by its id."""

    def __init__(self, client: Client, task_id: str) -> None:
        if not task_id or not task_id.isprintable():
            raise UnknownTask.named(repr(task_id))
        self.id = task_id
        self._client = client
        self._cancel_asked = asyncio.Event()

    def __repr__(self) -> str:
        return f"TaskHandle({self.id!r})"

    @property
    def _handle(self) -> WorkflowHandle[Any, Any]:
        return self._client.get_workflow_handle(self.id)

    async def status(self) -> TaskView:
        """Return the task as it is now, whether it runs or ended.

        One that the scheduler cannot replay, since it is of another version, is shown as far as Temporal knows it, with
        the error `cannot_replay`.

        Raises:
            UnknownTask: there is no such task, or it ended longer ago than the namespace keeps workflows.
            NoConnection: no scheduler answers.
        """
        found = await self._describe()
        try:
            view = await self._view()
        except CannotReplay as fault:
            return await unread_view(self._client, found, fault)
        if found.status in _CUT_SHORT and not view.ended:
            return _cut_short(view, _CUT_SHORT[found.status])
        if view.status == "queued":
            return view.model_copy(update={"pending_reason": await self._pending_reason(view.pool)})
        return view

    async def result(self) -> Any:
        """Wait for the task's end and return its result, a JSON value. If the task is reset meanwhile, wait on.

        A task that is cancelled has ended, though its device may be free only some seconds later. That is noticed at
        once if it was cancelled through this handle, and else within 5 seconds.

        Raises:
            TaskFailed: it failed; `error_code` says how, and `result` is what it left.
            TaskCancelled: it was cancelled.
            UnknownTask: there is no such task.
        """
        ending = asyncio.create_task(self._outcome())
        cancelling = asyncio.create_task(until_cancelled(self._handle, self._cancel_asked))
        try:
            await asyncio.wait({ending, cancelling}, return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                cancelling.result()
                raise TaskCancelled(f"task {self.id} was cancelled")
            return ending.result()
        finally:
            ending.cancel()
            cancelling.cancel()

    async def cancel(self) -> None:
        """Cancel the task; its work is told to stop. Cancelling it again does nothing.

        Raises:
            TaskEnded: it has ended as done or failed, and stays so.
            UnknownTask: there is no such task.
        """
        found = await self._describe()
        if found.status is WorkflowExecutionStatus.RUNNING:
            await self._ask(self._handle.cancel)
            self._cancel_asked.set()
        elif found.status is not WorkflowExecutionStatus.CANCELED:
            raise TaskEnded(f"task {self.id} has ended and cannot be cancelled", hint=f"toolcrib status {self.id}")

    async def watch(self) -> AsyncIterator[TaskView]:
        """Yield the task now, and again whenever it has changed, until it has ended.

        Raises:
            UnknownTask: there is no such task.
        """
        last: TaskView | None = None
        while last is None or not last.ended:
            view = await self.status()
            if view != last:
                yield view
            last = view
            if not view.ended:
                await asyncio.sleep(WATCH_INTERVAL)

    async def _outcome(self) -> Any:
        try:
            return await self._ask(self._handle.result)
        except WorkflowFailureError as error:
            cause = error.cause
            if isinstance(cause, TerminatedError) and await self._goes_on():
                return await self._outcome()
            if isinstance(cause, CancelledError):
                raise TaskCancelled(f"task {self.id} was cancelled") from None
            if isinstance(cause, ApplicationError):
                raise _failed(cause) from None
            raise TaskFailed(f"task {self.id} ended without a result: {cause}", code="terminated") from None

    async def _view(self) -> TaskView:
        try:
            view: TaskView = await self._ask(
                lambda: self._handle.query(TASK_VIEW, result_type=TaskView, rpc_timeout=QUERY_TIMEOUT)
            )
        except WorkflowQueryFailedError as error:
            raise (cannot_replay(f"task {self.id}", error) or error) from None
        return view

    async def _describe(self) -> WorkflowExecutionDescription:
        found: WorkflowExecutionDescription = await self._ask(lambda: self._handle.describe(rpc_timeout=QUERY_TIMEOUT))
        if found.workflow_type not in (SCHEDULED_TASK, EXTERNAL_TASK):
            raise UnknownTask.named(self.id)
        return found

    async def _goes_on(self) -> bool:
        """Return whether a run that was terminated was so by a reset: then there is a newer one."""
        return (await self._describe()).status is not WorkflowExecutionStatus.TERMINATED

    async def _pending_reason(self, pool: str) -> PendingReason | None:
        try:
            reasons: dict[str, PendingReason] = await self._client.get_workflow_handle(pool_workflow_id(pool)).query(
                POOL_REASONS,
                [self.id],
                result_type=dict[str, PendingReason],
                reject_condition=QueryRejectCondition.NOT_OPEN,
                rpc_timeout=QUERY_TIMEOUT,
            )
        except WorkflowQueryRejectedError:
            return _no_pool(UnknownPool.ended(pool))
        except RPCError as error:
            return _no_pool(UnknownPool.named(pool)) if error.status is RPCStatusCode.NOT_FOUND else None
        except WorkflowQueryFailedError:
            return None
        return reasons.get(self.id)

    async def _ask(self, call: Any) -> Any:
        try:
            return await patiently(call, ANSWER_WITHIN)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise UnknownTask.named(self.id) from None
            if error.status in {RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED}:
                raise NoConnection(
                    "no scheduler answers", hint="Start one: toolcrib worker --role scheduler (or see: toolcrib doctor)"
                ) from None
            raise


def _no_pool(error: UnknownPool) -> PendingReason:
    return PendingReason(code="out_of_service", text=error.message)


def _cut_short(view: TaskView, reason: str) -> TaskView:
    error = ErrorBody(code="terminated", message=reason, hint="Submit it again if it is still wanted.")
    return view.model_copy(update={"status": "failed", "state": "failed", "error": error, "message": reason})


def _failed(failure: ApplicationError) -> TaskFailed:
    details = failure.details[0] if failure.details and isinstance(failure.details[0], dict) else {}
    return TaskFailed(failure.message, hint=details.get("hint"), code=failure.type, result=details.get("result"))

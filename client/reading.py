"""Reads what a task is: from Temporal, which knows that it is there, and from its workflow, which knows the rest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final, TypeVar

from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.activities.retrying import put_again
from toolcrib.client.cut_short import CUT_SHORT, cut_short
from toolcrib.client.patience import patiently
from toolcrib.client.unread import unread_view
from toolcrib.scheduling.errors import CannotReplay, NoConnection, UnknownTask
from toolcrib.scheduling.names import EXTERNAL_TASK, SCHEDULED_TASK
from toolcrib.scheduling.views import TaskView
from toolcrib.workflows.contract import TASK_VIEW
from toolcrib.workflows.failures import cannot_replay

ANSWER_WITHIN: Final = 10.0
QUERY_TIMEOUT: Final = timedelta(seconds=ANSWER_WITHIN)

Result = TypeVar("Result")


class TaskReader:
    """Reads one task, by its id."""

    def __init__(self, client: Client, task_id: str) -> None:
        if not isinstance(task_id, str) or not task_id or not task_id.isprintable():
            raise UnknownTask.named(repr(task_id))
        self.task_id = task_id
        self._client = client

    @property
    def handle(self) -> WorkflowHandle[Any, Any]:
        """Temporal's handle on the task's workflow, in whatever run it is."""
        return self._client.get_workflow_handle(self.task_id)

    async def describe(self) -> WorkflowExecutionDescription:
        """Return what Temporal knows of the task. It costs the server a read, and no scheduler anything.

        Raises:
            UnknownTask: there is no such task.
            NoConnection: the server does not answer.
        """
        found = await self.ask(lambda: self.handle.describe(rpc_timeout=QUERY_TIMEOUT))
        if found.workflow_type not in (SCHEDULED_TASK, EXTERNAL_TASK):
            raise UnknownTask.named(self.task_id)
        return found

    async def view(self, found: WorkflowExecutionDescription) -> TaskView:
        """Return the task, which was `found` just now, without the reason for which it waits.

        Raises:
            CannotReplay: the scheduler is of another version, and cannot read it.
            NoConnection: no scheduler answers.
        """
        view: TaskView
        try:
            view = await put_again(
                lambda: self.ask(lambda: self.handle.query(TASK_VIEW, result_type=TaskView, rpc_timeout=QUERY_TIMEOUT))
            )
        except WorkflowQueryFailedError as error:
            raise (cannot_replay(f"task {self.task_id}", error) or error) from None
        if found.status in CUT_SHORT and not view.ended:
            return await self.ask(lambda: cut_short(self._client, view, found))
        return view

    async def unread(self, found: WorkflowExecutionDescription, fault: CannotReplay) -> TaskView:
        """Return a task that cannot be read as far as Temporal knows it, with `fault` as its error."""
        return await unread_view(self._client, found, fault)

    async def ask(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """Return what `call` returns, about this task.

        Raises:
            UnknownTask: there is no such task.
            NoConnection: there is no answer.
        """
        try:
            return await patiently(call, ANSWER_WITHIN)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise UnknownTask.named(self.task_id) from None
            if error.status in {RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED}:
                raise NoConnection(
                    "no scheduler answers", hint="Start one: toolcrib worker --role scheduler (or see: toolcrib doctor)"
                ) from None
            raise

"""A handle on one task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError

from toolcrib.client.attempt_files import AttemptFiles, attempt_of
from toolcrib.client.cancellation import until_cancelled
from toolcrib.client.logs import followed, log_of
from toolcrib.client.pending import pending_reasons
from toolcrib.client.reading import TaskReader
from toolcrib.client.watching import Watch
from toolcrib.scheduling.errors import CannotReplay, TaskCancelled, TaskEnded, TaskFailed
from toolcrib.scheduling.host_files import Artifact
from toolcrib.scheduling.views import AttemptView, TaskView


class TaskHandle:
    """One task, by its id."""

    def __init__(self, client: Client, task_id: str) -> None:
        self.id = task_id
        self._client = client
        self._reader = TaskReader(client, task_id)
        self._cancel_asked = asyncio.Event()

    def __repr__(self) -> str:
        return f"TaskHandle({self.id!r})"

    @property
    def _handle(self) -> WorkflowHandle[Any, Any]:
        return self._reader.handle

    async def status(self) -> TaskView:
        """Return the task as it is now, whether it runs or ended.

        One that the scheduler cannot replay, since it is of another version, is shown as far as Temporal knows it, with
        the error `cannot_replay`.

        Raises:
            UnknownTask: there is no such task, or it ended longer ago than the namespace keeps workflows.
            NoConnection: no scheduler answers.
        """
        found = await self._reader.describe()
        try:
            view = await self._reader.view(found)
        except CannotReplay as fault:
            return await self._reader.unread(found, fault)
        if view.status != "queued":
            return view
        reasons = await pending_reasons(self._client, view.pool, [self.id])
        return view.model_copy(update={"pending_reason": reasons.get(self.id)})

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
        found = await self._reader.describe()
        if found.status is WorkflowExecutionStatus.RUNNING:
            await self._reader.ask(self._handle.cancel)
            self._cancel_asked.set()
        elif found.status is not WorkflowExecutionStatus.CANCELED:
            raise TaskEnded(f"task {self.id} has ended and cannot be cancelled", hint=f"See: toolcrib status {self.id}")

    async def watch(self, *, on_silence: Callable[[], None] | None = None) -> AsyncIterator[TaskView]:
        """Yield the task now, and again whenever it has changed, until it has ended.

        It goes on when the server or its schedulers are away for a while; `on_silence` is called when it has to wait.

        Raises:
            UnknownTask: there is no such task.
        """
        async for view in Watch(self._client, on_silence).changes(self.id):
            yield view

    async def logs(
        self,
        attempt: int | None = None,
        *,
        follow: bool = False,
        on_attempt: Callable[[AttemptView], None] | None = None,
        on_silence: Callable[[str], None] | None = None,
    ) -> AsyncGenerator[bytes]:
        """Yield what an attempt has printed, in pieces of up to 256 KiB; by default the last attempt.

        With `follow` it goes on until the attempt has ended; without a number then also with those that follow it.
        `on_attempt` is called before each one's log, and `on_silence`, with the host's id, when a host does not answer
        and is waited for, or its log is left out since there is another attempt.

        Raises:
            UnknownTask: there is no such task.
            UnknownAttempt: it has no such attempt; with `follow`, it ended without one.
            UnknownFile: the host does not have the log, or no longer.
            HostUnreachable: the attempt's host does not answer.
        """
        pieces = (
            followed(self._client, self.id, attempt, on_attempt, on_silence)
            if follow
            else log_of(self._client, attempt_of(await self.status(), attempt), on_attempt)
        )
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece

    async def artifacts(self, attempt: int | None = None) -> list[Artifact]:
        """Return the files that an attempt, by default the last one, has left in `TOOLCRIB_ARTIFACTS`, by their paths.

        Raises:
            UnknownTask, UnknownAttempt, UnknownFile, HostUnreachable: as `logs`.
        """
        return await AttemptFiles(self._client, attempt_of(await self.status(), attempt)).artifacts()

    async def artifact(self, path: str, attempt: int | None = None) -> AsyncIterator[bytes]:
        """Yield the content of one of these files, in pieces of up to 256 KiB.

        Raises:
            UnknownTask, UnknownAttempt, HostUnreachable: as `logs`.
            UnknownFile: there is no such file, or no longer.
        """
        async for piece in AttemptFiles(self._client, attempt_of(await self.status(), attempt)).content(path):
            yield piece

    async def _outcome(self) -> Any:
        try:
            return await self._reader.ask(self._handle.result)
        except WorkflowFailureError as error:
            cause = error.cause
            if isinstance(cause, TerminatedError) and await self._goes_on():
                return await self._outcome()
            if isinstance(cause, CancelledError):
                raise TaskCancelled(f"task {self.id} was cancelled") from None
            if isinstance(cause, ApplicationError):
                raise _failed(cause) from None
            raise TaskFailed(f"task {self.id} ended without a result: {cause}", code="terminated") from None

    async def _goes_on(self) -> bool:
        """Return whether a run that was terminated was so by a reset: then there is a newer one."""
        return (await self._reader.describe()).status is not WorkflowExecutionStatus.TERMINATED


def _failed(failure: ApplicationError) -> TaskFailed:
    details = failure.details[0] if failure.details and isinstance(failure.details[0], dict) else {}
    return TaskFailed(failure.message, hint=details.get("hint"), code=failure.type, result=details.get("result"))

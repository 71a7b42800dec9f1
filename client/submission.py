"""How a request becomes a task: admitted by its pool first, then started as a workflow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import uuid_utils
from temporalio.client import Client, WorkflowExecutionDescription
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.activities.pool_link import PoolLinks
from toolcrib.client.patience import patiently
from toolcrib.scheduling.errors import IdempotencyConflict, InvalidRequest, from_body
from toolcrib.scheduling.messages import Admission, QueueEntry, SettleKind, Settlement
from toolcrib.scheduling.names import SCHEDULED_TASK, TASKS_QUEUE, checked_key
from toolcrib.scheduling.quoting import shown
from toolcrib.scheduling.request import TaskRequest

DIGEST: Final = "digest"
"""The memo by which a repeated submission with the same key is told from another one; without a key there is none."""
_NOT_STARTED: Final = (RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.NOT_FOUND)
"""With any other error the task may run all the same: its place is not withdrawn, the pool asks after it by itself."""


def check_requests(requests: Sequence[object]) -> None:
    """Let requests pass that are of the right type.

    Raises:
        InvalidRequest: one is not.
    """
    for number, request in enumerate(requests):
        if not isinstance(request, TaskRequest):
            raise InvalidRequest(
                f"requests[{number}]: {shown(request)} is no TaskRequest", hint='Make one: TaskRequest(goal="...")'
            )


class Submission:
    """One request on its way."""

    def __init__(self, client: Client, links: PoolLinks, request: TaskRequest, key: str | None = None) -> None:
        self.task_id = f"task-{uuid_utils.uuid7() if key is None else checked_key(key)}"
        self._client = client
        self._link = links.to(request.pool)
        self._request = request
        self._keyed = key is not None

    async def submit(self) -> None:
        """Have the request admitted, and start its task.

        Raises:
            QueueFull: the pool's queue is at its limit; nothing was created.
            UnknownPool: there is no such pool; nothing was created.
            IdempotencyConflict: the key belongs to a task with other content.
        """
        if self._keyed and await self._exists():
            return
        admission = await patiently(lambda: self._link.admit(self._entry()))
        if admission.refused is not None:
            raise from_body(admission.refused)
        try:
            await patiently(lambda: self._start(admission))
        except RPCError as error:
            if error.status in _NOT_STARTED and not self._keyed:
                await self._link.settle(Settlement(kind=SettleKind.WITHDRAW, task_id=self.task_id))
            raise

    async def _exists(self) -> bool:
        """Return whether the key's task is there already.

        Raises:
            IdempotencyConflict: it is, with other content.
        """
        try:
            found = await patiently(lambda: self._client.get_workflow_handle(self.task_id).describe())
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise
        await self._check_same(found)
        return True

    async def _check_same(self, found: WorkflowExecutionDescription) -> None:
        digest = await found.memo_value(DIGEST, default=None, type_hint=str)
        if digest != self._request.digest:
            raise IdempotencyConflict(f"key: {self.task_id.removeprefix('task-')!r} was used for another request")

    async def _start(self, admission: Admission) -> None:
        try:
            await self._client.start_workflow(
                SCHEDULED_TASK,
                args=[self._request.model_dump(exclude_defaults=True), admission],
                id=self.task_id,
                task_queue=TASKS_QUEUE,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                memo={DIGEST: self._request.digest} if self._keyed else None,
                search_attributes=TypedSearchAttributes(list(_attributes(self._request, admission))),
                static_summary=self._request.title,
            )
        except WorkflowAlreadyStartedError:
            # Ours, if an earlier try arrived without an answer; with a key perhaps somebody else's.
            await self._exists()

    def _entry(self) -> QueueEntry:
        return QueueEntry(
            task_id=self.task_id,
            constraints=self._request.constraints,
            priority=self._request.priority,
            max_attempts=self._request.max_attempts,
        )


def _attributes(request: TaskRequest, admission: Admission) -> Iterator[SearchAttributePair[Any]]:
    values = {
        "ToolcribPool": request.pool,
        "ToolcribStatus": "assigned" if admission.lease else "queued",
        "ToolcribDevice": admission.lease.device_key if admission.lease else None,
        "ToolcribHost": admission.lease.host_id if admission.lease else None,
        "ToolcribGroup": request.group_id,
    }
    for name, value in values.items():
        if value is not None:
            yield SearchAttributePair(SearchAttributeKey.for_keyword(name), value)

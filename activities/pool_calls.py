"""Activities by which workflows reach pools and tasks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, Final, Literal, TypeVar

from temporalio import activity
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.activities.pool_link import PoolLinks
from toolcrib.scheduling.errors import ToolcribError
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import Admission, AskedAfter, HostRestarted, HostSilent, QueueEntry, Settlement
from toolcrib.scheduling.names import SCHEDULED_TASK
from toolcrib.workflows.contract import (
    ADMIT,
    ASK_AFTER,
    DELIVER,
    DELIVER_PATIENTLY,
    SETTLE,
    SILENCE,
    TASK_COME_FORWARD,
    TASK_GRANT,
    TASK_HOST_RESTARTED,
    TELL_HOLDERS,
)

Result = TypeVar("Result")

FIRST_TRY: Final = timedelta(milliseconds=200)
LATER_TRY: Final = timedelta(seconds=5)
LOCAL_BOUND: Final = 1.8
"""Seconds; workflows give a local activity two, and its end by timeout would be logged as a failure."""
AT_ONCE: Final = 20
"""Tasks asked after at the same time."""
MOST_ASKED: Final = 500
"""Tasks looked up, and called forward, at one asking; the others have their turn at the next."""


class PoolCalls:
    """Calls to pools, and from pools to tasks; each may be repeated without harm."""

    def __init__(self, client: Client, links: PoolLinks) -> None:
        self._client = client
        self._links = links

    @property
    def local(self) -> Sequence[Any]:
        """Those that workflows also run as local activities."""
        return [self.settle, self.admit, self.silence, self.deliver]

    @property
    def patient(self) -> Sequence[Any]:
        """Those of the link queue."""
        return [self.settle, self.admit, self.silence, self.deliver_patiently, self.ask_after, self.tell_holders]

    @activity.defn(name=SETTLE)
    async def settle(self, pool: str, message: Settlement) -> str:
        """Give back a lease or a place, and return the id of the workflow run that does."""
        await _quietly(self._links.to(pool).settle(message))
        return activity.info().workflow_run_id or ""

    @activity.defn(name=ADMIT)
    async def admit(self, pool: str, entry: QueueEntry) -> Admission:
        """Ask for a place in the queue; a refusal is an answer, too."""
        try:
            return await _quietly(self._links.to(pool).admit(entry))
        except ToolcribError as refusal:
            return Admission(task_id=entry.task_id, refused=refusal.body)

    @activity.defn(name=SILENCE)
    async def silence(self, pool: str, message: HostSilent) -> None:
        """Report a host that fell silent."""
        await _quietly(self._links.to(pool).silence(message))

    @activity.defn(name=DELIVER)
    async def deliver(self, grants: list[Lease]) -> list[str]:
        """Tell tasks of their leases, and return those that could not be told at once."""
        return await self._untold(grants, FIRST_TRY)

    @activity.defn(name=DELIVER_PATIENTLY)
    async def deliver_patiently(self, grants: list[Lease]) -> None:
        """Tell tasks of their leases; fails while some cannot be told, to be tried again."""
        if missed := await self._untold(grants, LATER_TRY):
            raise _to_be_tried_again(f"not delivered yet: {', '.join(missed)}")

    @activity.defn(name=ASK_AFTER)
    async def ask_after(self, pool: str) -> AskedAfter:
        """Return which tasks of a pool no longer run; ask those to come forward that run and that it does not know.

        What Temporal lists may be a moment old, so each task that is not in the list is looked up. The list is made
        first: whoever was admitted since is in the pool by then.
        """
        listed = await self._listed(pool)
        members = dict.fromkeys(await self._links.to(pool).members())
        absent = [task_id for task_id in members if task_id not in listed]
        absent = random.sample(absent, min(len(absent), MOST_ASKED))
        strangers = [task_id for task_id in listed if task_id not in members][:MOST_ASKED]
        found = dict(zip(absent, await _some_at_once(self._state_of, absent), strict=True))
        called = zip(strangers, await _some_at_once(self._call_forward, strangers), strict=True)
        return AskedAfter(
            gone=tuple(task_id for task_id, state in found.items() if state == "closed"),
            missing=tuple(task_id for task_id, state in found.items() if state == "missing"),
            strangers=tuple(task_id for task_id, heard in called if heard),
            run_id=activity.info().workflow_run_id or "",
        )

    @activity.defn(name=TELL_HOLDERS)
    async def tell_holders(self, task_ids: list[str], news: HostRestarted) -> None:
        """Tell tasks that their host has a new worker; fails while some cannot be told, to be tried again."""
        told = await asyncio.gather(*(self._tell_of_restart(task_id, news) for task_id in task_ids))
        if missed := [task_id for task_id, done in zip(task_ids, told, strict=True) if not done]:
            raise _to_be_tried_again(f"not told yet: {', '.join(missed)}")

    async def _listed(self, pool: str) -> dict[str, None]:
        query = f"WorkflowType = '{SCHEDULED_TASK}' AND ToolcribPool = '{pool}' AND ExecutionStatus = 'Running'"
        return {found.id: None async for found in self._client.list_workflows(query)}

    async def _untold(self, grants: list[Lease], bound: timedelta) -> list[str]:
        told = await asyncio.gather(*(self._tell(lease, bound) for lease in grants))
        return [lease.task_id for lease, done in zip(grants, told, strict=True) if not done]

    async def _tell(self, lease: Lease, bound: timedelta) -> bool:
        try:
            await self._client.get_workflow_handle(lease.task_id).signal(TASK_GRANT, lease, rpc_timeout=bound)
        except RPCError:
            return False
        return True

    async def _tell_of_restart(self, task_id: str, news: HostRestarted) -> bool:
        """Return whether the task knows, or needs not know since it has ended."""
        task = self._client.get_workflow_handle(task_id)
        try:
            await task.signal(TASK_HOST_RESTARTED, news, rpc_timeout=LATER_TRY)
        except RPCError as error:
            return error.status is RPCStatusCode.NOT_FOUND
        return True

    async def _state_of(self, task_id: str) -> Literal["open", "closed", "missing"]:
        try:
            found = await self._client.get_workflow_handle(task_id).describe(rpc_timeout=LATER_TRY)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return "missing"
            raise
        return "open" if found.status is WorkflowExecutionStatus.RUNNING else "closed"

    async def _call_forward(self, task_id: str) -> bool:
        """Ask a task to tell its pool of itself, and return whether it still runs."""
        try:
            await self._client.get_workflow_handle(task_id).signal(TASK_COME_FORWARD, rpc_timeout=LATER_TRY)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise
        return True


async def _some_at_once(call: Callable[[str], Awaitable[Result]], task_ids: Sequence[str]) -> list[Result]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(task_id: str) -> Result:
        async with gate:
            return await call(task_id)

    return await asyncio.gather(*map(one, task_ids))


async def _quietly(call: Awaitable[Result]) -> Result:
    """Return what `call` returns; what may pass is raised so that it is tried again, and nobody is alarmed."""
    try:
        async with asyncio.timeout(LOCAL_BOUND if activity.info().is_local else None):
            return await call
    except TimeoutError:
        raise _to_be_tried_again("no answer yet") from None
    except (RPCError, WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
        raise _to_be_tried_again(str(error)) from None


def _to_be_tried_again(reason: str) -> ApplicationError:
    return ApplicationError(reason, type="not_through", category=ApplicationErrorCategory.BENIGN)

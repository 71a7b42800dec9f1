"""The way from this process to its pools, for clients and activities alike."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final, TypeVar

from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import QueryRejectCondition
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.activities.batching import Batcher
from toolcrib.activities.retrying import put_again
from toolcrib.scheduling.errors import UnknownPool
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import (
    Admission,
    HostKey,
    HostLeaves,
    HostSilent,
    HostSnapshot,
    HostStanding,
    QueueEntry,
    Registration,
    Settlement,
)
from toolcrib.scheduling.names import pool_workflow_id
from toolcrib.scheduling.views import HostView
from toolcrib.workflows.contract import (
    POOL_ADMIT,
    POOL_ENROLL,
    POOL_LEAVE,
    POOL_MEMBERS,
    POOL_REGISTER,
    POOL_SETTLE,
    POOL_SILENCE,
    POOL_STANDING,
)
from toolcrib.workflows.failures import cannot_replay, refusal_in

ANSWER_WITHIN: Final = 15.0
"""Seconds for one call. The server itself says after 20 that an update is not answered yet, and is asked on."""
RPC_TIMEOUT: Final = timedelta(seconds=ANSWER_WITHIN)

Result = TypeVar("Result")


class PoolLink:
    """One pool, as this process reaches it: admissions and settlements go in batches."""

    def __init__(self, client: Client, pool: str) -> None:
        self.pool = pool
        self._client = client
        self._admit = Batcher(self._send_entries)
        self._settle = Batcher(self._send_settlements)

    @property
    def _handle(self) -> WorkflowHandle[Any, Any]:
        return self._client.get_workflow_handle(pool_workflow_id(self.pool))

    async def admit(self, entry: QueueEntry) -> Admission:
        """Ask for a place in the queue.

        Raises:
            QueueFull: the whole batch was refused; else a refusal is in the answer.
            UnknownPool: there is no such pool.
            RPCError: Temporal did not take the call; it may be made again.
        """
        return await self._admit(entry)

    async def settle(self, message: Settlement) -> None:
        """Give back a lease or a place. A pool that no longer exists has nothing to take back.

        Raises:
            RPCError: Temporal did not take the call; it may be made again.
        """
        await self._settle(message)

    async def register(self, snapshot: HostSnapshot) -> Registration:
        """Bring a host with its devices into the pool.

        Raises:
            InvalidRequest: the pool cannot carry so many devices.
            UnknownPool: there is no such pool.
            RPCError: Temporal did not take the call; it may be made again.
        """
        return await self._update(POOL_REGISTER, snapshot, Registration)

    async def standing(self, host_id: str) -> HostStanding:
        """Return what the pool knows of a host, and whether it wants to hear from it.

        Raises:
            UnknownPool: there is no such pool, or it was ended.
            RPCError: the pool does not answer; it may be asked again.
        """
        return await self._query(POOL_STANDING, [host_id], HostStanding)

    async def enroll(self, order: HostKey) -> HostView:
        """Have a host's public key kept, or forgotten, and return how the host is then.

        Raises:
            InvalidRequest: the key is malformed, or the host is enrolled with another.
            UnknownDevice: there is no such host whose key could be forgotten.
            UnknownPool: there is no such pool.
            RPCError: Temporal did not take the call; it may be made again.
        """
        return await self._update(POOL_ENROLL, order, HostView)

    async def members(self) -> list[str]:
        """Return the tasks that the pool knows.

        Raises:
            UnknownPool: there is no such pool, or it was ended.
            RPCError: no answer came.
        """
        return await self._query(POOL_MEMBERS, [], list[str])

    async def silence(self, message: HostSilent) -> None:
        """Tell the pool that a host fell silent."""
        await self._tell(POOL_SILENCE, message)

    async def leave(self, message: HostLeaves) -> list[Lease]:
        """Say that a host's worker begins to stop, and return the leases that are out on its devices.

        Raises:
            UnknownPool: there is no such pool.
            RPCError: Temporal did not take the call; it may be made again.
        """
        return await self._update(POOL_LEAVE, message, list[Lease])

    async def ask(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """Return what `call`, an update or query of the pool, returns, with its errors as toolcrib's own.

        One whose pool was just going on in a new run may be made again: see `is_unanswered`.
        """
        try:
            return await put_again(call)
        except WorkflowUpdateFailedError as error:
            if (refusal := refusal_in(error)) is None:
                raise
            raise refusal from None
        except WorkflowQueryFailedError as error:
            if (reason := cannot_replay(f"pool {self.pool!r}", error)) is None:
                raise
            raise reason from None
        except WorkflowQueryRejectedError as error:
            if error.status is WorkflowExecutionStatus.CONTINUED_AS_NEW:
                raise
            raise UnknownPool.ended(self.pool) from None
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                ended = "already completed" in error.message  # the server has no other way to tell
                raise (UnknownPool.ended if ended else UnknownPool.named)(self.pool) from None
            raise

    async def _update(self, name: str, message: Any, result_type: type[Result]) -> Result:
        async def call() -> Result:
            try:
                async with asyncio.timeout(ANSWER_WITHIN):
                    answer: Result = await self._handle.execute_update(name, message, result_type=result_type)
                    return answer
            except TimeoutError:
                late = f"pool {self.pool!r} has not answered within {ANSWER_WITHIN:g} s"
                raise RPCError(late, RPCStatusCode.DEADLINE_EXCEEDED, b"") from None

        return await self.ask(call)

    async def _query(self, name: str, args: list[Any], result_type: type[Result]) -> Result:
        answer: Result = await self.ask(
            lambda: self._handle.query(
                name,
                args=args,
                result_type=result_type,
                reject_condition=QueryRejectCondition.NOT_OPEN,
                rpc_timeout=RPC_TIMEOUT,
            )
        )
        return answer

    async def _tell(self, signal: str, message: Any) -> None:
        try:
            await self._handle.signal(signal, message, rpc_timeout=RPC_TIMEOUT)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise

    async def _send_entries(self, entries: list[QueueEntry]) -> list[Admission]:
        return await self._update(POOL_ADMIT, entries, list[Admission])

    async def _send_settlements(self, messages: list[Settlement]) -> list[None]:
        await self._tell(POOL_SETTLE, messages)
        return [None] * len(messages)


class PoolLinks:
    """The links of one process, by pool."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._links: dict[str, PoolLink] = {}

    def to(self, pool: str) -> PoolLink:
        """Return the link to `pool`."""
        if pool not in self._links:
            self._links[pool] = PoolLink(self._client, pool)
        return self._links[pool]

"""Keeps a lease alive by heartbeats that the server has acknowledged, and ends the work when it cannot.

Acknowledged, since the SDK alone does not tell in time: cut off from the server, a worker was not told of its expired
lease within a minute and a half. The SDK's own heartbeat is sent as well, because its timer cancels otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Final, TypeVar

from temporalio import activity
from temporalio.client import AsyncActivityCancelledError
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.activities.guard import NotKilled, boottime
from toolcrib.scheduling.errors import ToolcribError
from toolcrib.scheduling.messages import Progress

RENEWALS_PER_TTL: Final = 5
SAFE_PART: Final = 2 / 3
"""Of the ttl, counted from the sending of the last acknowledged renewal: then the work has to be gone."""

Result = TypeVar("Result")


class LeaseLost(ToolcribError):
    """The lease is no longer this worker's, or may not be much longer."""

    code = "lease_lost"


class LeaseCancelled(LeaseLost):
    """The lease is still this worker's, and its task wants it to end."""


class Renewal:
    """Renews the lease of the activity in whose context it was made."""

    def __init__(self, ttl: float, renewed: Callable[[float], None]) -> None:
        self._handle = activity.client().get_async_activity_handle(task_token=activity.info().task_token)
        self._ttl = ttl
        self._renewed = renewed
        self.deadline = boottime() + ttl * SAFE_PART
        """Until when the work may run, in seconds of `boottime()`."""
        self.news: Callable[[], Progress | None] = lambda: None
        """Returns how far the work is; every renewal carries it along, for those who look at the activity."""
        self._lost = False

    @property
    def lost(self) -> bool:
        """Whether the lease is no longer held; a task that wants it to end does not count."""
        details = activity.cancellation_details()
        return self._lost or (details is not None and (details.not_found or details.timed_out))

    async def renew(self) -> None:
        """Renew once. A server that does not answer is no reason to give up before the deadline.

        Raises:
            LeaseLost: the lease is over, or the deadline has passed.
        """
        sent = boottime()
        try:
            await self._handle.heartbeat(*self._details(), rpc_timeout=timedelta(seconds=self._ttl / RENEWALS_PER_TTL))
        except AsyncActivityCancelledError:
            raise LeaseCancelled("the lease was cancelled") from None
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise LeaseLost("the lease is over") from None
            if boottime() > self.deadline:
                raise LeaseLost("the lease could not be renewed in time") from None
            return
        self.deadline = sent + self._ttl * SAFE_PART
        self._renewed(self.deadline)

    async def during(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return what `work` returns, renewing all the while; no heartbeat is under way afterwards.

        Raises:
            LeaseLost: the lease was lost, and the work has been cancelled and has ended.
            NotKilled: `work` was cancelled, for whatever reason, and something of it is left.
        """
        body, renewing = asyncio.create_task(work), asyncio.create_task(self._for_ever())
        try:
            await asyncio.wait({body, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if not body.done():
                self._lost = not isinstance(renewing.exception(), LeaseCancelled)
                await _stopped(body)
                renewing.result()
            return body.result()
        except asyncio.CancelledError:
            await _stopped(body)
            raise
        finally:
            await _ended(renewing)

    async def _for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._ttl / RENEWALS_PER_TTL)
            activity.heartbeat(*self._details())
            await self.renew()

    def _details(self) -> tuple[Progress, ...]:
        newest = self.news()
        return () if newest is None else (newest,)


async def _stopped(body: asyncio.Task[Any]) -> None:
    """Cancel the work and wait until it has ended; however it does, but not in silence if something of it is left."""
    await _ended(body)
    if not body.cancelled() and isinstance(body.exception(), NotKilled):
        body.result()


async def _ended(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait until it has ended, however it does."""
    task.cancel()
    await asyncio.wait({task})
    _ = task.cancelled() or task.exception()

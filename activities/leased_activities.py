"""Activities on a host's work queue run only while their lease is held, and keep its device until they have ended.

Those of others run aside: on an event loop in a thread of their own, so that one that blocks keeps no lease from being
renewed. What is not async runs in the SDK's threads anyway.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any

from temporalio import activity
from temporalio.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

from toolcrib.activities.aside import Aside, here
from toolcrib.activities.held_leases import HeldLease, HeldLeases
from toolcrib.activities.renewal import LeaseLost
from toolcrib.workflows.failures import to_failure
from toolcrib.workflows.lease_header import LEASE_HEADER


class LeasedActivities(Interceptor):
    """Stands before all activities of a host's work queue, but for those that are `free`, by name."""

    def __init__(self, held: HeldLeases, *, free: Sequence[str], foreign: Sequence[Callable[..., Any]]) -> None:
        """`foreign` are activities that are not ours, which run aside."""
        self._held = held
        self._free = free
        self._foreign = foreign

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - as its base
        """Return what stands before one activity."""
        if activity.info().activity_type in self._free:
            return next
        return _Leased(next, self._held, self._foreign)


class _Leased(ActivityInboundInterceptor):
    def __init__(
        self, following: ActivityInboundInterceptor, held: HeldLeases, foreign: Sequence[Callable[..., Any]]
    ) -> None:
        super().__init__(following)
        self._held = held
        self._foreign = foreign

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        super().init(_HeartbeatsAtHome(outbound))

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - as its base
        marked = input.headers.get(LEASE_HEADER)
        try:
            held = self._held.get(None if marked is None else activity.payload_converter().from_payload(marked, str))
        except LeaseLost as error:
            raise to_failure(error) from None

        async def call() -> Any:
            return await super(_Leased, self).execute_activity(input)

        with held.visible():
            if input.executor is not None:
                ended = _begun(held, call(), cancels=False)
            elif input.fn in self._foreign:
                ended = _begun_aside(held, call)
            else:
                ended = _begun(held, call(), cancels=True)
        return await _outcome(held, *ended)


class _HeartbeatsAtHome(ActivityOutboundInterceptor):
    """Lets an activity heartbeat from a loop that is not its worker's."""

    def __init__(self, following: ActivityOutboundInterceptor) -> None:
        super().__init__(following)
        self._home = asyncio.get_running_loop()

    def heartbeat(self, *details: Any) -> None:
        if asyncio.get_running_loop() is self._home:
            super().heartbeat(*details)
        else:
            self._home.call_soon_threadsafe(super().heartbeat, *details, context=contextvars.copy_context())


_Begun = tuple["asyncio.Future[Any]", Callable[[], None]]


def _begun(held: HeldLease, call: Coroutine[Any, Any, Any], *, cancels: bool) -> _Begun:
    """Begin an activity in this loop, or in a thread of the SDK, which no cancellation reaches from here."""
    task, ended = asyncio.create_task(call), Future[object]()

    def cancel() -> None:
        if cancels:
            task.cancel()

    task.add_done_callback(lambda _: ended.set_result(task.cancelled() or task.exception()))
    held.entered(ended, cancel)
    return task, cancel


def _begun_aside(held: HeldLease, call: Callable[[], Coroutine[Any, Any, Any]]) -> _Begun:
    context = contextvars.copy_context()

    async def inside() -> Any:
        return await asyncio.get_running_loop().create_task(call(), context=context)

    aside = Aside(f"activity {activity.info().activity_type}", inside)
    held.entered(aside.ended, aside.cancel)
    return here(aside.ended), aside.cancel


async def _outcome(held: HeldLease, ended: asyncio.Future[Any], cancel: Callable[[], None]) -> Any:
    """Return what an activity returns, unless its lease ends first."""
    while not ended.done() and not held.closed.done():
        try:
            await asyncio.wait({ended, held.closed}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            cancel()
    try:
        held.check()
    except LeaseLost as error:
        raise to_failure(error) from None
    return ended.result()

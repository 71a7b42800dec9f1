"""The worker of an application: a host role inside the application's own process, for works of its own."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from types import TracebackType
from typing import Final, Self

import structlog
from temporalio.client import Client
from temporalio.service import RPCError

from toolcrib.activities.aside import Aside
from toolcrib.activities.host_keys import HostKeyPair, load_or_create_key
from toolcrib.activities.machine import machine_name
from toolcrib.activities.pool_link import PoolLinks
from toolcrib.activities.retrying import is_unanswered, retried
from toolcrib.activities.runners.aside import AsideRunner
from toolcrib.activities.runners.works import Works
from toolcrib.scheduling.constraints import checked_tags
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.errors import InvalidRequest, NoConnection, NotEnrolled
from toolcrib.scheduling.messages import HostKey
from toolcrib.scheduling.names import checked_name
from toolcrib.worker.host_file import HostFile
from toolcrib.worker.host_role import host_role
from toolcrib.worker.settings import load_settings, prepared_home
from toolcrib.worker.stopping import STOP_WITHIN, until_stopped

ANSWER_WITHIN: Final = 30.0
"""Seconds in which the pool has to take the application's host in."""

_log = structlog.get_logger(__name__)


class ApplicationWorker:
    """Serves an application's works while its context is open, from a thread and an event loop of its own.

    So whatever blocks the application's loop keeps no lease from being renewed. If the worker cannot go on, the block
    is cancelled, and raises why.
    """

    def __init__(
        self, client: Client, works: Works, pool: str, *, slots: int, host_id: str | None, drain: float
    ) -> None:
        if slots < 1:
            raise InvalidRequest(f"slots: {slots} is less than 1")
        self.host_id = checked_name(host_id or f"app-{machine_name()}"[:64], "host_id")
        self._client = client
        self._works = works
        self._drain = drain
        self._host = HostFile(id=self.host_id, devices=_slots(slots, works), pool=pool)
        self._ready: Future[None] = Future()
        self._leaving = self._interrupted = False

    async def __aenter__(self) -> Self:
        self._aside = Aside(f"worker of host {self.host_id}", self._serve)
        self._ended = asyncio.wrap_future(self._aside.ended)
        ready = asyncio.wrap_future(self._ready)
        try:
            await asyncio.wait({ready, self._ended}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self._stop()
            raise
        if not ready.done():
            self._ended.result()
        body = asyncio.current_task()
        assert body is not None
        self._body = body
        self._ended.add_done_callback(self._interrupt)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving = True
        if self._interrupted:
            self._body.uncancel()
            self._ended.result()
        await self._stop()

    def _interrupt(self, _: asyncio.Future[None]) -> None:
        if not self._leaving:
            self._interrupted = True
            self._body.cancel()

    async def _stop(self) -> None:
        self._aside.cancel()
        await asyncio.wait({self._ended}, timeout=self._drain + STOP_WITHIN)
        if not self._ended.done():
            _log.error("the worker does not end in order; leaving it", host=self.host_id)
        elif not self._ended.cancelled() and (fault := self._ended.exception()) is not None:
            _log.warning("the worker ended with an error", host=self.host_id, reason=str(fault))

    async def _serve(self) -> None:
        settings = load_settings()
        home = prepared_home(settings)
        await self._enroll(load_or_create_key(home, self.host_id))
        works = AsideRunner(self._works)
        async with host_role(
            self._client, self._host, home, drain=self._drain, locks=settings.locks, works=works
        ) as agent:
            try:
                await until_stopped(agent.registered, *agent.failures)
                self._ready.set_result(None)
                await until_stopped(asyncio.Event(), *agent.failures)
            except asyncio.CancelledError:
                _leave_in_order()
            if agent.fault is not None:
                raise agent.fault

    async def _enroll(self, key: HostKeyPair) -> None:
        """Have the pool know this host's key; one that an operator has revoked stays so."""
        link, order = PoolLinks(self._client).to(self._host.pool), HostKey(host_id=key.host_id, public_key=key.public)

        async def enrolled() -> None:
            known = await link.standing(key.host_id)
            if known.public_key is None and known.instance:
                raise NotEnrolled.named(key.host_id, self._host.pool, key.public)
            await link.enroll(order)

        try:
            await retried(enrolled, is_unanswered, patience=ANSWER_WITHIN, longest_pause=1.0)
        except RPCError as error:
            raise NoConnection(
                f"no scheduler answers: {error.message}", hint="Start one: toolcrib worker --role scheduler"
            ) from None


def _leave_in_order() -> None:
    """Take the cancellation of this task as said and done, so that what follows runs as it would without."""
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()


def _slots(number: int, works: Works) -> tuple[DeviceSpec, ...]:
    tags = checked_tags(works.tags, "works")
    if not tags:
        raise InvalidRequest("the application has no works yet", hint="Register one before: @crib.work(NAME)")
    return tuple(
        DeviceSpec(id=f"slot-{count}", driver="local", driver_type="local", tags=tags) for count in range(1, number + 1)
    )

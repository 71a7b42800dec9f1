"""One host's worker, as its pool knows it: it registers, shows that it lives, and says when it leaves."""

from __future__ import annotations

import asyncio
import uuid
from typing import Final

import structlog
from temporalio.client import Client
from temporalio.exceptions import TemporalError

from toolcrib.activities.dispatcher import TaskDispatcher
from toolcrib.activities.drivers import load_driver
from toolcrib.activities.guard import Guard
from toolcrib.activities.lease_folders import LeaseFolders
from toolcrib.activities.lease_run import LeaseRuns
from toolcrib.activities.pool_link import PoolLinks
from toolcrib.activities.possession import Possessions
from toolcrib.activities.presence import HostPresence
from toolcrib.activities.retrying import is_unanswered, retried
from toolcrib.activities.runners import load_goal_runner, load_workflow_runner
from toolcrib.scheduling.errors import ToolcribError, UnknownPool
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import HostLeaves, HostSnapshot, Presence
from toolcrib.scheduling.names import HOST, TASKS_QUEUE, host_workflow_id
from toolcrib.worker.host_file import HostFile
from toolcrib.workflows.contract import HOST_HELLO

PICK_UP: Final = 30.0
PAUSE: Final = 1.0
PATIENCE: Final = 5.0
"""Seconds that a worker takes to leave, before its work may finish."""

_log = structlog.get_logger(__name__)


class HostAgent:
    """One host's worker: its guard, its runners and its place in the pool."""

    def __init__(
        self, client: Client, host: HostFile, guard: Guard, possessions: Possessions, folders: LeaseFolders
    ) -> None:
        self.registered = asyncio.Event()
        self.guard = guard
        self.presence = HostPresence()
        self.runs = LeaseRuns(
            client=client,
            devices={device.id: device for device in host.devices},
            drivers={device.driver: load_driver(device.driver) for device in host.devices},
            dispatcher=TaskDispatcher(
                load_goal_runner(host.runners.goal) if host.runners.goal else None,
                load_workflow_runner(host.runners.workflow) if host.runners.workflow else None,
            ),
            guard=guard,
            possessions=possessions,
            folders=folders,
        )
        self._client = client
        self._host = host
        self._link = PoolLinks(client).to(host.pool)
        self._snapshot = HostSnapshot(host_id=host.id, instance=uuid.uuid4().hex, devices=tuple(host.devices))

    async def stay_registered(self) -> None:
        """Register with the pool, and again whenever the host's presence is no longer counted on."""
        while True:
            try:
                await self._register()
                await self.presence.until(shown=True, timeout=PICK_UP)
                await self.presence.until(shown=False, timeout=None)
            except TimeoutError:
                _log.warning("presence was not taken up; registering again", host=self._host.id)
            await asyncio.sleep(PAUSE)

    async def leave(self) -> None:
        """Have the pool grant nothing more here, and give back what it has granted and nobody has begun.

        A lease that is on its way from the server is waited for, but only for a moment: without a worker to return it,
        it would run out and count as an attempt.
        """
        if not self.registered.is_set():
            return
        try:
            async with asyncio.timeout(PATIENCE):
                leases = await self._say_goodbye()
                self.runs.arrivals.closed = True
                await self.runs.arrivals.until(leases)
        except TimeoutError:
            _log.warning("leaving without all leases that are on their way", host=self._host.id)
        except (ToolcribError, TemporalError) as error:
            _log.warning("leaving without a word to the pool", host=self._host.id, reason=str(error))

    async def _say_goodbye(self) -> list[Lease]:
        message = HostLeaves(host_id=self._host.id, incarnation=self.runs.incarnation)
        return await retried(lambda: self._link.leave(message), is_unanswered, patience=None, longest_pause=1.0)

    async def _register(self) -> None:
        found = await retried(
            lambda: self._link.register(self._snapshot), self._may_pass, patience=None, longest_pause=5.0
        )
        self.runs.incarnation = found.incarnation
        presence = Presence(host_id=self._host.id, pool=self._host.pool, incarnation=found.incarnation, ttl=found.ttl)
        await self._client.start_workflow(
            HOST,
            presence,
            id=host_workflow_id(self._host.id),
            task_queue=TASKS_QUEUE,
            start_signal=HOST_HELLO,
            start_signal_args=[presence],
            static_summary=f"Host {self._host.id} of pool {self._host.pool}",
        )
        self.registered.set()
        _log.info("host registered", host=self._host.id, pool=self._host.pool, incarnation=found.incarnation)

    def _may_pass(self, error: BaseException) -> bool:
        if isinstance(error, UnknownPool):
            _log.warning("waiting for the pool to be created", host=self._host.id, pool=self._host.pool)
            return True
        return is_unanswered(error)

"""The host role: takes the leases of one host's devices and runs them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

import structlog
from temporalio.client import Client
from temporalio.worker import Worker

from toolcrib.activities.dispatcher import TaskDispatcher
from toolcrib.activities.drivers import load_driver
from toolcrib.activities.guard import Guard
from toolcrib.activities.lease_run import LeaseRuns
from toolcrib.activities.pool_link import PoolLinks
from toolcrib.activities.presence import HostPresence
from toolcrib.activities.retrying import is_unanswered, retried
from toolcrib.activities.runners import load_goal_runner, load_workflow_runner
from toolcrib.scheduling.errors import UnknownPool
from toolcrib.scheduling.messages import HostSnapshot, Presence
from toolcrib.scheduling.names import HOST, TASKS_QUEUE, host_queue, host_work_queue, host_workflow_id
from toolcrib.worker.host_file import HostFile
from toolcrib.workflows.contract import HOST_HELLO

POLLS: Final = 20
"""As for schedulers: see `toolcrib.worker.scheduler_role`."""
PICK_UP: Final = 30.0
PAUSE: Final = 1.0

_log = structlog.get_logger(__name__)


class HostAgent:
    """One host's worker: its guard, its runners and its place in the pool."""

    def __init__(self, client: Client, host: HostFile, guard: Guard, home: Path) -> None:
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
            folder=home / "hosts" / host.id,
            artifacts=home / "artifacts",
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


@asynccontextmanager
async def host_role(client: Client, host: HostFile, home: Path, *, drain: float) -> AsyncIterator[HostAgent]:
    """Serve leases of the host's devices as long as the context is open; then let work finish for `drain` seconds.

    Raises:
        InvalidRequest: a driver or runner is unknown.
        GuardLost: the guard did not start.
    """
    guard = await Guard.start()
    try:
        agent = HostAgent(client, host, guard, home)
        async with (
            Worker(client, task_queue=host_work_queue(host.id), activities=[agent.presence.presence]),
            Worker(
                client,
                task_queue=host_queue(host.id),
                activities=[agent.runs.run_lease],
                max_concurrent_activities=len(host.devices),
                max_concurrent_activity_task_polls=min(len(host.devices), POLLS),
                graceful_shutdown_timeout=timedelta(seconds=drain),
            ),
        ):
            registering = asyncio.create_task(agent.stay_registered())
            try:
                yield agent
            finally:
                registering.cancel()
                agent.presence.leave()
    finally:
        await guard.close()

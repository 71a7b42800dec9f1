"""The host role: takes the leases of one host's devices and runs them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

from temporalio.client import Client
from temporalio.worker import Worker

from toolcrib.activities.brought import Brought
from toolcrib.activities.fencing import ServedFencing
from toolcrib.activities.guard import Guard
from toolcrib.activities.host_keys import load_or_create_key
from toolcrib.activities.lease_folders import LeaseFolders
from toolcrib.activities.locks import LockFolder
from toolcrib.activities.possession import Possessions
from toolcrib.activities.run_records import RunRecords
from toolcrib.activities.runners import WorkflowRunner
from toolcrib.activities.runners.under_lease import HostWork, LeasedRuns
from toolcrib.scheduling.names import host_queue
from toolcrib.worker.files_role import files_role
from toolcrib.worker.found_devices import load_drivers, with_found_devices
from toolcrib.worker.host_agent import HostAgent
from toolcrib.worker.host_file import HostFile
from toolcrib.worker.sole_host import sole_host
from toolcrib.worker.work_queue import work_worker

POLLS: Final = 20
"""As for schedulers: see `toolcrib.worker.scheduler_role`."""
NOTHING: Final = Brought()


@asynccontextmanager
async def host_role(
    client: Client,
    host: HostFile,
    home: Path,
    *,
    drain: float,
    locks: Path,
    works: WorkflowRunner | None = None,
    plugins: Brought = NOTHING,
) -> AsyncIterator[HostAgent]:
    """Serve leases of the host's devices as long as the context is open; then let work finish for `drain` seconds.

    The host shows that it lives until its work has ended, so that the pool sees it as draining and not as gone.
    `locks` is the folder of the machine's device locks; `works` runs the works of an application, if it has any,
    and `plugins` are workflows and activities that may be run under leases.

    Raises:
        InvalidRequest: a driver or runner is unknown, a driver finds no devices, or the host's key or the locks cannot
            be used.
        HostRunsAlready: another process serves this host.
        NotKilled: what an earlier life left running does not end.
        GuardLost: the guard did not start.
        NoConnection: workflows of an earlier life are to be ended, and the server does not answer.
    """
    key = load_or_create_key(home, host.id)
    lock_folder, folders = LockFolder(locks), LeaseFolders(home, host.id, log_limit=host.log_limit)
    async with sole_host(host.id, lock_folder, folders), _guard() as guard:
        drivers = load_drivers(host)
        host = await with_found_devices(host, drivers)
        served = ServedFencing(home / "hosts" / host.id / "served")
        runs = LeasedRuns(client, host.id, host.pool, RunRecords(home / "hosts" / host.id / "runs"))
        work = HostWork(host_id=host.id, runs=runs, plugins=plugins, definitions=host.definitions)
        possessions = Possessions(guard, lock_folder, served)
        agent = HostAgent(client, host, key, drivers, guard, possessions, folders, work, works)
        await runs.end_predecessors()
        async with files_role(client, host, folders), work_worker(client, host, agent, work):
            try:
                async with _lease_worker(client, host, agent, drain):
                    registering = asyncio.create_task(agent.stay_registered())
                    registering.add_done_callback(agent.registering_ended)
                    try:
                        yield agent
                    finally:
                        registering.cancel()
                        await agent.leave()
            finally:
                agent.presence.leave()


@asynccontextmanager
async def _guard() -> AsyncIterator[Guard]:
    guard = await Guard.start()
    try:
        yield guard
    finally:
        await guard.close()


def _lease_worker(client: Client, host: HostFile, agent: HostAgent, drain: float) -> Worker:
    return Worker(
        client,
        task_queue=host_queue(host.id),
        activities=[agent.runs.run_lease],
        max_concurrent_activities=len(host.devices),
        max_concurrent_activity_task_polls=min(len(host.devices), POLLS),
        graceful_shutdown_timeout=timedelta(seconds=drain),
    )

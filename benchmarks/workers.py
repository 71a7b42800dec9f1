"""The process that serves a benchmark: scheduler, host and the bare workflow's worker, told by its arguments where."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from bare import QUEUE, Bare, nothing
from temporalio.worker import Worker

from toolcrib.activities.context import LeaseContext
from toolcrib.activities.host_keys import load_or_create_key
from toolcrib.activities.pool_link import PoolLinks
from toolcrib.activities.pools import ensure_pool
from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.messages import HostKey
from toolcrib.worker.connection import connect_to
from toolcrib.worker.host_file import HostFile
from toolcrib.worker.host_role import host_role
from toolcrib.worker.logs import configure_logs
from toolcrib.worker.runner_names import RunnerNames
from toolcrib.worker.scheduler_role import POLLS, scheduler_role, workflow_runner
from toolcrib.worker.settings import Settings
from toolcrib.worker.stopping import stop_signals
from toolcrib.worker.target import plain_target

POOLS = {"nothing": "workers:Nothing", "shell": "shell"}
"""Pools of the benchmark, each with a host of its own, and what runs their goals."""


class Nothing:
    """A goal runner that costs nothing, as the bare workflow's activity does."""

    async def run(self, goal: str, context: LeaseContext) -> None:
        """Return at once."""


async def serve(address: str, home: Path, devices: int) -> None:
    """Serve until a signal, and say `ready` before."""
    slots = tuple(DeviceSpec(id=f"slot-{n}", driver="local", driver_type="local") for n in range(devices))
    hosts = [
        HostFile(id=f"host-{pool}", pool=pool, devices=slots, runners=RunnerNames(goal=goal))
        for pool, goal in POOLS.items()
    ]
    with stop_signals() as stop:
        client = await connect_to(plain_target(address))
        async with (
            scheduler_role(client),
            Worker(
                client,
                task_queue=QUEUE,
                workflows=[Bare],
                activities=[nothing],
                workflow_runner=workflow_runner(),
                max_concurrent_workflow_task_polls=POLLS,
                max_concurrent_activity_task_polls=POLLS,
            ),
            AsyncExitStack() as running,
        ):
            for host in hosts:
                await ensure_pool(client, host.pool, PoolConfig(max_concurrent=None, max_queue_depth=20_000))
                public_key = load_or_create_key(home, host.id).public
                await PoolLinks(client).to(host.pool).enroll(HostKey(host_id=host.id, public_key=public_key))
                agent = await running.enter_async_context(
                    host_role(client, host, home, drain=0.0, locks=home / "locks")
                )
                await agent.registered.wait()
            print("ready", flush=True)
            await stop.wait()


if __name__ == "__main__":
    configure_logs(Settings(log_level="warning"))
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))

"""The process that serves a benchmark: scheduler, host and the bare workflow's worker, told by its arguments where."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from bare import QUEUE, Bare, nothing
from temporalio.worker import Worker

from toolcrib.activities.pools import ensure_pool
from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.worker.connection import connect_to
from toolcrib.worker.host_file import HostFile, RunnerNames
from toolcrib.worker.host_role import host_role
from toolcrib.worker.logs import configure_logs
from toolcrib.worker.scheduler_role import POLLS, scheduler_role, workflow_runner
from toolcrib.worker.settings import Settings
from toolcrib.worker.stopping import stop_signals
from toolcrib.worker.target import plain_target


async def serve(address: str, home: Path, devices: int) -> None:
    """Serve until a signal, and say `ready` before."""
    slots = tuple(DeviceSpec(id=f"slot-{n}", driver="local", driver_type="local") for n in range(devices))
    host = HostFile(id="bench", pool="bench", devices=slots, runners=RunnerNames(goal="shell"))
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
        ):
            await ensure_pool(client, "bench", PoolConfig(max_concurrent=None, max_queue_depth=20_000))
            async with host_role(client, host, home, drain=0.0) as agent:
                await agent.registered.wait()
                print("ready", flush=True)
                await stop.wait()


if __name__ == "__main__":
    configure_logs(Settings(log_level="warning"))
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))

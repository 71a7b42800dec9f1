"""Many tasks, many clients, many devices."""

from __future__ import annotations

import asyncio
import os
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from support.lab import Lab, slot, until_pool
from support.runners import NOTING, noting
from toolcrib.client import TaskRequest, Toolcrib
from toolcrib.worker.embedded import EmbeddedServer

ONE_CLIENT = """
import asyncio, sys
from toolcrib.client import Toolcrib
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

async def main(address, namespace, name):
    crib = Toolcrib(await Client.connect(address, namespace=namespace, data_converter=pydantic_data_converter))
    print("connected", flush=True)
    sys.stdin.readline()
    task = await crib.submit("true", name=name)
    print(task.id, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.timeout(600)
async def test_500_tasks_drain_in_order(lab: Lab) -> None:
    """500 tasks can be queued, and one device serves them in the order of their submission."""
    crib = await lab.pool(max_queue_depth=500)
    goals = [f"drain {number}" for number in range(500)]
    tasks = await crib.submit_many([TaskRequest(goal=goal, pool="lab") for goal in goals])
    assert (await crib.pool().show()).queued == 500
    async with lab.host(goal=NOTING):
        await asyncio.gather(*(task.result() for task in tasks))
    assert [goal for goal in noting.goals if goal in goals] == goals


async def test_no_slot_is_ever_used_twice_at_once(lab: Lab, tmp_path: Path) -> None:
    """Of 50 tasks on 5 slots of two hosts no two overlap on one, by the times that the tasks wrote down."""
    crib = await lab.pool()
    journal = tmp_path / "journal"
    slot_name = "$TOOLCRIB_HOST_ID/$TOOLCRIB_DEVICE_ID"
    goal = f'b=$(date +%s%N); sleep 0.05; echo "{slot_name} $b $(date +%s%N)" >>{journal}'
    async with lab.host("a", [slot(f"s{n}") for n in range(3)]), lab.host("b", [slot("s0"), slot("s1")]):
        tasks = await crib.submit_many([TaskRequest(goal=goal, pool="lab")] * 50)
        await asyncio.gather(*(task.result() for task in tasks))
    runs = sorted((device, int(begin), int(end)) for device, begin, end in map(str.split, journal.open()))
    assert len(runs) == 50
    assert len({device for device, _, _ in runs}) == 5
    assert not [(a, b) for a, b in pairwise(runs) if a[0] == b[0] and b[1] < a[2]]


@pytest.mark.timeout(300)
async def test_100_clients_at_once_are_all_admitted(lab: Lab, server: EmbeddedServer) -> None:
    """100 processes that submit at the same moment all get their task within 20 seconds."""
    gate = asyncio.Semaphore(8)

    async def start(number: int) -> asyncio.subprocess.Process:
        async with gate:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", ONE_CLIENT, server.address, lab.client.namespace, f"client-{number}"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
            assert process.stdout is not None
            assert await process.stdout.readline() == b"connected\n"
            return process

    clients = await asyncio.gather(*map(start, range(100)))
    for process in clients:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
    async with asyncio.timeout(20):
        answers = [await process.stdout.readline() for process in clients if process.stdout is not None]
    await asyncio.gather(*(process.wait() for process in clients))
    assert len({answer.strip() for answer in answers if answer.startswith(b"task-")}) == 100
    assert (await lab.crib.pool().show()).queued == 100


async def test_a_pool_goes_on_in_new_runs_under_load(lab: Lab) -> None:
    """A pool that continues as new again and again loses nothing, and no caller notices."""
    await lab.client.start_workflow(
        "DevicePool",
        args=[{"max_concurrent": None}, None, 60],
        id="toolcrib-pool-short",
        task_queue="toolcrib-pools",
    )
    crib = Toolcrib(lab.client, pool="short")
    async with lab.host(pool="short", devices=[slot(f"s{n}") for n in range(4)]):
        requests = [TaskRequest(goal="true", pool="short", name=f"task {number}") for number in range(100)]
        tasks = await crib.submit_many(requests)
        late = await asyncio.gather(*(crib.submit("true") for _ in range(30)))
        await asyncio.gather(*(task.result() for task in [*tasks, *late]))
        pool = await until_pool(crib, lambda pool: pool.leased == 0)
    assert {device.state for device in pool.devices} <= {"idle", "offline"}
    runs = [run.run_id async for run in lab.client.list_workflows("WorkflowId = 'toolcrib-pool-short'")]
    assert len(runs) > 3
    assert [(await task.status()).attempt for task in tasks] == [1] * 100

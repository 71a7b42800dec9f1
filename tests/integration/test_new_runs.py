"""A pool that goes on in a new run again and again, with a long queue and many callers."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from support.lab import Lab, slot, until_pool
from support.runners import NOTING, noting
from toolcrib.client import TaskHandle, TaskRequest, Toolcrib

MAX_EVENTS = 60
"""Of a run, after which the pool goes on in a new one."""


async def submitted(lab: Lab) -> list[TaskHandle]:
    """Submit 1,000 tasks through 110 connections at once: a hundred of them one task each, the others ninety."""

    async def one(number: int) -> list[TaskHandle]:
        return [await Toolcrib(lab.client, pool="long").submit(f"runs single {number}")]

    async def many(number: int) -> list[TaskHandle]:
        requests = [TaskRequest(goal=f"runs {number} {each}", pool="long") for each in range(90)]
        return await Toolcrib(lab.client, pool="long").submit_many(requests)

    made = await asyncio.gather(*map(one, range(100)), *map(many, range(10)))
    return [task for tasks in made for task in tasks]


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_a_thousand_queued_tasks_survive_many_new_runs(lab: Lab) -> None:
    """No caller is rejected, no task is lost, none is there or runs twice, and each runs at its first attempt."""
    start: list[Any] = [{"max_concurrent": None, "max_queue_depth": 1_000}, None, MAX_EVENTS]
    await lab.client.start_workflow("DevicePool", args=start, id="toolcrib-pool-long", task_queue="toolcrib-pools")
    crib = Toolcrib(lab.client, pool="long")
    tasks = await submitted(lab)
    view = await crib.pool().show()
    assert len({task.id for task in tasks}) == view.queued == 1_000
    assert [entry.position for entry in view.queue] == list(range(1, len(view.queue) + 1))
    assert len({entry.id for entry in view.queue} & {task.id for task in tasks}) == len(view.queue)
    async with lab.host(pool="long", goal=NOTING, devices=[slot(f"s{n}") for n in range(8)]):
        await asyncio.gather(*(task.result() for task in tasks))
        pool = await until_pool(crib, lambda pool: pool.leased == 0)
    assert pool.queued == 0
    counts = Counter(goal for goal in noting.goals if goal.startswith("runs "))
    assert (len(counts), set(counts.values())) == (1_000, {1})
    runs = [run.run_id async for run in lab.client.list_workflows("WorkflowId = 'toolcrib-pool-long'")]
    assert len(runs) > 10

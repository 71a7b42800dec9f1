"""Tasks whose pool does not answer wait for it; they do not fail, also if their scheduler changes meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.worker import Worker

from support.histories import replay
from support.lab import Lab, eventually, until_pool, until_status
from toolcrib.activities.pool_calls import PoolCalls
from toolcrib.activities.pool_link import PoolLinks
from toolcrib.activities.pools import create_pool
from toolcrib.client import Toolcrib
from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.names import LINK_QUEUE, TASKS_QUEUE
from toolcrib.worker.scheduler_role import scheduler_role, workflow_runner
from toolcrib.workflows.scheduled_task import ScheduledTask


@asynccontextmanager
async def tasks_only(client: Client) -> AsyncIterator[None]:
    """Have a scheduler that serves tasks, and no pool."""
    calls = PoolCalls(client, PoolLinks(client))
    async with (
        Worker(
            client,
            task_queue=TASKS_QUEUE,
            workflows=[ScheduledTask],
            activities=calls.local,
            workflow_runner=workflow_runner(),
        ),
        Worker(client, task_queue=LINK_QUEUE, activities=calls.patient),
    ):
        yield


async def test_a_task_waits_for_a_pool_that_is_away(client: Client, tmp_path: Path) -> None:
    """A task whose pool does not answer at once asks by the link, and has its place when the pool is back."""
    await create_pool(client, "lab", PoolConfig())
    async with tasks_only(client):
        handle = await client.start_workflow(
            "ScheduledTask", {"goal": "true", "pool": "lab"}, id="task-early", task_queue=TASKS_QUEUE
        )

        async def events() -> list[int]:
            return [event.event_type for event in (await handle.fetch_history()).events]

        await eventually(events, lambda found: EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED in found)
    async with scheduler_role(client):
        crib = Toolcrib(client, pool="lab")
        async with Lab(client, crib, tmp_path).host():
            await until_status(crib.task("task-early"), "done")
            await until_pool(crib, lambda pool: pool.leased == 0)
    await replay([await handle.fetch_history()])

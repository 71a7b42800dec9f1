"""Updates that come in while a query waits for a scheduler: the workflow replays all the same."""

from __future__ import annotations

import asyncio

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Replayer, Worker

from support.lab import eventually
from support.late_updates import LateUpdates
from toolcrib.worker.scheduler_role import workflow_runner

MANY = 12
"""Workflows whose queries and tasks wait; which of the two a worker gets first is for the server to say."""

Handle = WorkflowHandle[LateUpdates, None]


def worker(client: Client) -> Worker:
    """Return a worker that runs workflows as a scheduler does."""
    return Worker(client, task_queue="late", workflows=[LateUpdates], workflow_runner=workflow_runner())


async def has_fired(handle: Handle) -> bool:
    """Return whether the workflow's timer has fired."""
    fired = EventType.EVENT_TYPE_TIMER_FIRED
    return any(event.event_type == fired for event in (await handle.fetch_history()).events)


async def test_a_query_that_waited_does_no_harm(client: Client) -> None:
    """Without a worker, a query waits, a timer fires and an update comes; what the next worker does of it replays."""
    handles: list[Handle] = [
        await client.start_workflow(LateUpdates.run, id=f"late-{number}", task_queue="late") for number in range(MANY)
    ]
    async with worker(client):
        await asyncio.gather(*(handle.execute_update(LateUpdates.update) for handle in handles))
    queries = [asyncio.create_task(handle.query(LateUpdates.updates)) for handle in handles]
    for handle in handles:
        await eventually(lambda handle=handle: has_fired(handle), bool)  # type: ignore[misc]
    updates = [asyncio.create_task(handle.execute_update(LateUpdates.update)) for handle in handles]
    async with worker(client):
        assert await asyncio.gather(*updates) == [2] * MANY
        assert 1 in await asyncio.gather(*queries), "no query came before the update: this run shows nothing"
        await asyncio.gather(*(handle.signal(LateUpdates.end) for handle in handles))
        await asyncio.gather(*(handle.result() for handle in handles))
    for handle in handles:
        replayer = Replayer(workflows=[LateUpdates], workflow_runner=workflow_runner())
        await replayer.replay_workflow(await handle.fetch_history())

"""The activities by which workflows reach pools and tasks, on a real server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import Replayer, Worker

from support.lab import Lab, eventually, until_pool, until_status
from support.servers import connect
from support.settling import Settling, settle_slowly
from toolcrib.activities.pool_calls import PoolCalls
from toolcrib.activities.pool_link import PoolLinks
from toolcrib.client import TaskCancelled, TaskHandle, Toolcrib, UnknownPool
from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import HostSilent, QueueEntry, SettleKind, Settlement
from toolcrib.scheduling.names import LINK_QUEUE
from toolcrib.worker.embedded import EmbeddedServer


def calls(client: Client) -> PoolCalls:
    """Return the activities as a scheduler has them."""
    return PoolCalls(client, PoolLinks(client))


async def run(call: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
    """Run one of them as a worker does."""
    return await ActivityEnvironment().run(call, *arguments)


def entry(task_id: str) -> QueueEntry:
    """Return how a task asks for a place."""
    return QueueEntry(task_id=task_id, constraints=Constraints())


def lease(task_id: str, **fields: Any) -> Lease:
    """Return a first lease that is valid for ever."""
    given = {"attempt": 1, "host_id": "lab-1", "device_id": "slot-1", "fencing": 1, "assigned_at": 0.0, "ttl": 15.0}
    return Lease(**{"task_id": task_id, "claim_by": 4e9, **given, **fields})


async def test_a_refusal_is_an_answer(lab: Lab) -> None:
    """A task that asks for a place hears why it gets none, and is not asked to try again."""
    await lab.pool(max_queue_depth=1)
    call = calls(lab.client)
    assert (await run(call.admit, "lab", entry("task-1"))).refused is None
    full, unknown = await run(call.admit, "lab", entry("task-2")), await run(call.admit, "nowhere", entry("task-2"))
    assert full.refused is not None
    assert unknown.refused is not None
    assert (full.refused.code, unknown.refused.code) == ("queue_full", "unknown_pool")


async def test_an_admission_may_be_asked_for_twice(lab: Lab) -> None:
    """The same task keeps the place that it has."""
    crib = await lab.pool()
    call = calls(lab.client)
    first, again = await run(call.admit, "lab", entry("task-1")), await run(call.admit, "lab", entry("task-1"))
    assert first.submitted_at == again.submitted_at
    assert (await crib.pool().show()).queued == 1


async def test_a_pool_that_is_gone_takes_nothing_back(lab: Lab) -> None:
    """Settling with a pool that does not exist, or telling it of a host, succeeds: there is nothing to be done."""
    call = calls(lab.client)
    await run(call.settle, "nowhere", Settlement(kind=SettleKind.WITHDRAW, task_id="task-1"))
    await run(call.silence, "nowhere", HostSilent(host_id="lab-1", incarnation=1, reason="it went"))


async def test_registering_names_a_pool_that_is_not_there(lab: Lab) -> None:
    """A host learns by name that its pool does not exist, and can wait for it."""
    with pytest.raises(UnknownPool, match="'lab'"):
        await PoolLinks(lab.client).to("lab").standing("lab-1")


async def test_grants_reach_tasks_that_run_and_the_others_are_told_of(lab: Lab) -> None:
    """Delivery names the tasks that could not be told; the patient one fails by them, to be tried again."""
    crib = await lab.pool()
    running, ended = await crib.submit("echo 1"), await _ended(crib)
    call = calls(lab.client)
    grants = [lease(running.id), lease(ended.id), lease("task-nobody")]
    assert {ended.id, "task-nobody"} <= set(await run(call.deliver, grants))
    with pytest.raises(ApplicationError) as caught:
        await run(call.deliver_patiently, grants)
    assert caught.value.message == f"not delivered yet: {ended.id}, task-nobody"
    assert not caught.value.non_retryable
    assert [attempt.host_id for attempt in (await until_status(running, "assigned")).attempts] == ["lab-1"]


async def test_asked_after_are_the_living_the_gone_and_those_that_nobody_knows(lab: Lab) -> None:
    """Of a pool's tasks it is told whose workflow is closed, and whose is not there; strangers come forward."""
    crib = await lab.pool()
    link = PoolLinks(lab.client).to("lab")
    running, ended, stranger = [await crib.submit("echo") for _ in range(3)]
    nobody = [f"task-nobody-{number}" for number in range(50)]
    for task_id in nobody:
        await link.admit(entry(task_id))
    await lab.client.get_workflow_handle(ended.id).terminate()
    await link.settle(Settlement(kind=SettleKind.WITHDRAW, task_id=stranger.id))
    await until_pool(crib, lambda pool: stranger.id not in [one.id for one in pool.queue])
    found = await eventually(
        lambda: run(calls(lab.client).ask_after, "lab"), lambda found: found.strangers == (stranger.id,)
    )
    assert (found.gone, sorted(found.missing)) == ((ended.id,), sorted(nobody))
    pool = await until_pool(crib, lambda pool: stranger.id in [one.id for one in pool.queue])
    assert [one.id for one in pool.queue][:3] == [running.id, ended.id, stranger.id]


async def test_what_local_activities_lack_the_link_has(lab: Lab) -> None:
    """Everything that is tried at once is there to be tried patiently, too."""
    call = calls(lab.client)
    names = [{method.__name__ for method in part} for part in (call.local, call.patient)]
    assert names[0] - {"deliver"} <= names[1]
    assert "deliver_patiently" in names[1]


async def _ended(crib: Toolcrib) -> TaskHandle:
    task = await crib.submit("true", tags=["nowhere"])
    await task.cancel()
    with pytest.raises(TaskCancelled):
        await task.result()
    return task


async def test_a_call_that_timed_out_replays_as_it_ran(server: EmbeddedServer, namespace: str) -> None:
    """The SDK raises another error for it then; a workflow that let it through could never be replayed again."""
    client = await connect(server.address, namespace)
    async with (
        Worker(client, task_queue="settling", workflows=[Settling], activities=[settle_slowly]),
        Worker(client, task_queue=LINK_QUEUE, activities=[settle_slowly]),
    ):
        handle: WorkflowHandle[Any, str] = await client.start_workflow("Settling", id="settling", task_queue="settling")
        assert await handle.result() == "patiently"
    await Replayer(workflows=[Settling]).replay_workflow(await handle.fetch_history())

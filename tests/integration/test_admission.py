"""Tasks that were not admitted by a client, and admissions without a task."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from temporalio.client import (
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleSpec,
    WorkflowFailureError,
)
from temporalio.exceptions import ApplicationError

from support.lab import Lab, until_pool, until_status
from toolcrib.client import IdempotencyConflict, TaskFailed, UnknownPool
from toolcrib.worker.embedded import EmbeddedServer
from toolcrib.worker.server_program import server_binary


async def test_a_task_started_by_temporals_own_cli_admits_itself(lab: Lab, server: EmbeddedServer) -> None:
    """`temporal workflow start` is a submission: the task queues, runs, and shows up with the others."""
    crib = await lab.pool()
    process = await asyncio.create_subprocess_exec(
        *(str(server_binary()), "workflow", "start", "--address", server.address),
        *("--namespace", lab.client.namespace, "--type", "ScheduledTask", "--task-queue", "toolcrib-tasks"),
        *("--workflow-id", "by-hand", "--input", '{"goal": "echo by hand", "pool": "lab"}'),
        stdout=asyncio.subprocess.DEVNULL,
    )
    assert await process.wait() == 0
    task = crib.task("by-hand")
    await until_pool(crib, lambda pool: [entry.id for entry in pool.queue] == ["by-hand"])
    async with lab.host():
        assert (await task.result())["output"] == "by hand\n"


async def test_a_task_of_a_schedule_admits_itself(lab: Lab) -> None:
    """A Temporal Schedule submits tasks by starting them."""
    crib = await lab.pool()
    action = ScheduleActionStartWorkflow(
        "ScheduledTask", {"goal": "true", "pool": "lab"}, id="nightly", task_queue="toolcrib-tasks"
    )
    handle = await lab.client.create_schedule("nightly", Schedule(action=action, spec=ScheduleSpec()))
    await handle.trigger()
    await until_pool(crib, lambda pool: pool.queued == 1)
    (entry,) = (await crib.pool().show()).queue
    async with lab.host():
        await until_status(crib.task(entry.id), "done")


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"goal": " "}, "invalid"),
        ({"goal": "true", "colour": "red"}, "invalid"),
        ("echo hello", "invalid"),
        (None, "invalid"),
        ({"goal": "true", "pool": "nowhere"}, "unknown_pool"),
    ],
)
async def test_a_refused_task_fails_and_says_why(lab: Lab, request_: object, code: str) -> None:
    """A task that admits itself and is refused ends as failed, by the code a client would have got."""
    with pytest.raises(WorkflowFailureError) as caught:
        await lab.client.execute_workflow(
            "ScheduledTask", request_, id="refused", task_queue="toolcrib-tasks", task_timeout=timedelta(seconds=5)
        )
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == code
    assert (await lab.crib.task("refused").status()).status == "failed"


async def test_a_full_queue_refuses_a_task_that_admits_itself(lab: Lab) -> None:
    """It fails with queue_full, and takes no place."""
    crib = await lab.pool(max_queue_depth=1)
    await crib.submit("true")
    await lab.client.start_workflow(
        "ScheduledTask", {"goal": "true", "pool": "lab"}, id="late", task_queue="toolcrib-tasks"
    )
    with pytest.raises(TaskFailed) as caught:
        await crib.task("late").result()
    assert caught.value.error_code == "queue_full"
    assert (await crib.pool().show()).queued == 1


async def test_a_queue_timeout_fails_the_task(lab: Lab) -> None:
    """A task that waited as long as it may fails, says so, and gives up its place."""
    crib = await lab.pool()
    task = await crib.submit("true", queue_timeout=1)
    with pytest.raises(TaskFailed, match="no device became free within 1 s") as caught:
        await task.result()
    assert caught.value.error_code == "queue_timeout"
    await until_pool(crib, lambda pool: pool.queued == 0)


async def test_the_same_key_is_the_same_task(lab: Lab) -> None:
    """Submitting again with the same key returns the task that is there; other content is a conflict."""
    crib = await lab.pool()
    first = await crib.submit("true", key="nightly-7")
    again = await crib.submit("true", key="nightly-7")
    assert (first.id, again.id) == ("task-nightly-7", "task-nightly-7")
    with pytest.raises(IdempotencyConflict, match="'nightly-7' was used for another request"):
        await crib.submit("false", key="nightly-7")
    async with lab.host():
        await first.result()
    assert (await (await crib.submit("true", key="nightly-7")).status()).status == "done"


async def test_many_at_once_with_one_key_are_one_task(lab: Lab) -> None:
    """Ten submissions racing with one key make one task, which runs once."""
    crib = await lab.pool()
    async with lab.host():
        tasks = await asyncio.gather(*(crib.submit("true", key="once") for _ in range(10)))
        await tasks[0].result()
        await until_pool(crib, lambda pool: pool.leased == 0)
    assert {task.id for task in tasks} == {"task-once"}
    assert (await tasks[0].status()).attempt == 1
    found = [run.id async for run in lab.client.list_workflows("WorkflowType = 'ScheduledTask'")]
    assert found in (["task-once"], [])


async def test_an_unknown_pool_is_named(lab: Lab) -> None:
    """Submitting to a pool that does not exist is refused, and creates nothing."""
    with pytest.raises(UnknownPool, match="there is no pool 'nowhere'"):
        await lab.crib.submit("true", pool="nowhere")

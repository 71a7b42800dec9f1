"""A host claims what was assigned to it. Rows S1-46 to S1-49, S1-63."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from support.lab import Lab, until_status
from support.runners import CONTROLLED, controlled
from toolcrib.client import TaskView
from toolcrib.scheduling.messages import Assignment


async def claim(lab: Lab, task_id: str, lease_id: str, claim_id: str, host_id: str = "lab-1") -> Assignment:
    """Claim a lease as a host's worker would."""
    request = lab.key(host_id).claim(lease_id, claim_id, 1, "here")
    handle: Any = lab.client.get_workflow_handle(task_id)
    answer: Assignment = await handle.execute_update("claim", request, result_type=Assignment)
    return answer


async def refusal(lab: Lab, task_id: str, lease_id: str, claim_id: str = "c") -> str | None:
    """Return the code with which a claim is refused."""
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await claim(lab, task_id, lease_id, claim_id)
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause.type


async def assigned(lab: Lab, goal: str = "echo") -> TaskView:
    """Return a task that was assigned, and that nobody but the test will claim."""
    crib = await lab.pool()
    await lab.register_only()
    return await until_status(await crib.submit(goal), "assigned")


async def test_s1_46_only_an_assigned_attempt_can_be_claimed(lab: Lab) -> None:
    """A queued task has nothing to claim, and neither has one that has ended."""
    crib = await lab.pool()
    task = await crib.submit("s1-46")
    assert await refusal(lab, task.id, f"{task.id}.1.1") == "lease_superseded"
    async with lab.host(goal=CONTROLLED):
        lease = (await until_status(task, "dispatched")).attempts[0].lease_id
        assert await refusal(lab, task.id, lease) == "already_claimed"
        controlled.finish("s1-46")
        await task.result()
    with pytest.raises(Exception, match="workflow execution already completed"):
        await claim(lab, task.id, lease, "c")


async def test_s1_47_a_claim_makes_it_dispatched(lab: Lab) -> None:
    """With the answer to the claim, the task is dispatched, and only then its goal is told."""
    view = await assigned(lab, "echo secret")
    answer = await claim(lab, view.id, view.attempts[0].lease_id, "c")
    now = await lab.crib.task(view.id).status()
    assert (answer.goal, now.status) == ("echo secret", "dispatched")
    assert now.started_at is not None


async def test_s1_48_one_request_gets_the_work(lab: Lab) -> None:
    """Of two requests for the same work one gets it, the other a conflict."""
    view = await assigned(lab)
    lease = view.attempts[0].lease_id
    await claim(lab, view.id, lease, "first")
    assert await refusal(lab, view.id, lease, "second") == "already_claimed"


async def test_s1_49_in_a_race_at_most_one_succeeds(lab: Lab) -> None:
    """Of twenty parallel claims exactly one succeeds, and the winner can ask again."""
    view = await assigned(lab)
    lease = view.attempts[0].lease_id
    answers = await asyncio.gather(
        *(claim(lab, view.id, lease, f"claim-{n}") for n in range(20)), return_exceptions=True
    )
    won = [n for n, answer in enumerate(answers) if isinstance(answer, Assignment)]
    assert len(won) == 1
    assert await claim(lab, view.id, lease, f"claim-{won[0]}") == answers[won[0]]


async def test_s1_63_an_ended_task_gives_its_device_back(lab: Lab) -> None:
    """With one device, a second task runs as soon as the first has ended, done or failed."""
    crib = await lab.pool()
    async with lab.host():
        tasks = [await crib.submit(goal) for goal in ("true", "false", "true")]
        ends = [(await until_status(task, "done", "failed")).status for task in tasks]
    assert ends == ["done", "failed", "done"]

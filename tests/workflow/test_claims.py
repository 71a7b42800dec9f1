"""Claims that are refused leave no trace; what a newer host adds to one does no harm."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from support.lab import Lab, until, until_status
from toolcrib.activities.pool_link import PoolLinks
from toolcrib.client import TaskHandle, TaskView
from toolcrib.scheduling.messages import Assignment, HostSilent

QUICK: dict[str, Any] = {"claim_timeout": 1, "lease_ttl": 3}


async def ask(lab: Lab, task_id: str, **claim: Any) -> Assignment:
    """Claim as a host would, in plain JSON."""
    given = {"host_id": "lab-1", "claim_id": "c", "incarnation": 1, **claim}
    key = lab.key(given["host_id"])
    signed = key.claim(given["lease_id"], given["claim_id"], given["incarnation"], "here")
    request = {**asdict(signed), **given}
    answer: Assignment = await lab.client.get_workflow_handle(task_id).execute_update(
        "claim", request, result_type=Assignment
    )
    return answer


async def refusal(lab: Lab, task_id: str, **claim: Any) -> tuple[str | None, int]:
    """Return by which code a claim is refused, and how many events that wrote."""
    handle: Any = lab.client.get_workflow_handle(task_id)
    before = (await handle.describe()).history_length
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await ask(lab, task_id, **claim)
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause.type, (await handle.describe()).history_length - before


async def assigned(lab: Lab, **pool: Any) -> tuple[TaskHandle, TaskView]:
    """Return a task whose lease nobody but the test will claim."""
    crib = await lab.pool(**pool)
    await lab.register_only()
    task = await crib.submit("echo secret")
    return task, await until_status(task, "assigned")


async def test_another_host_gets_nothing(lab: Lab) -> None:
    """A claim of a host that does not have the lease is refused by name, and is not in the history."""
    task, view = await assigned(lab)
    lease_id = view.attempts[0].lease_id
    assert await refusal(lab, task.id, lease_id=lease_id, host_id="lab-2") == ("not_owner", 0)
    assert (await task.status()).status == "assigned"
    assert (await ask(lab, task.id, lease_id=lease_id)).goal == "echo secret"


async def test_another_claim_of_the_same_host_gets_nothing(lab: Lab) -> None:
    """A second claim is refused by name, and is not in the history."""
    task, view = await assigned(lab)
    await ask(lab, task.id, lease_id=view.attempts[0].lease_id, claim_id="first")
    refused = await refusal(lab, task.id, lease_id=view.attempts[0].lease_id, claim_id="second")
    assert refused == ("already_claimed", 0)


async def test_an_expired_lease_gets_nothing(lab: Lab) -> None:
    """A claim of a lease that is over is refused by name, and is not in the history."""
    task, view = await assigned(lab, **QUICK)
    await PoolLinks(lab.client).to("lab").silence(HostSilent(host_id="lab-1", incarnation=1, reason="it went"))
    await until_status(task, "queued")
    assert await refusal(lab, task.id, lease_id=view.attempts[0].lease_id) == ("lease_expired", 0)


async def test_a_superseded_lease_gets_nothing(lab: Lab) -> None:
    """A claim of a lease that is not the newest, or never was, is refused by name, and is not in the history."""
    task, view = await assigned(lab, **QUICK)
    await lab.crib.pool("lab").configure(claim_timeout=600)
    await until(task, lambda view: len(view.attempts) == 2)
    assert await refusal(lab, task.id, lease_id=view.attempts[0].lease_id) == ("lease_superseded", 0)
    assert await refusal(lab, task.id, lease_id=f"{task.id}.9.9") == ("lease_superseded", 0)


async def test_an_unknown_field_is_ignored(lab: Lab) -> None:
    """A host of a later version may say more than this task understands."""
    task, view = await assigned(lab)
    answer = await ask(lab, task.id, lease_id=view.attempts[0].lease_id, mood="sunny", parts=[{"of": "tomorrow"}])
    assert answer.goal == "echo secret"


@pytest.mark.parametrize("nonsense", ["claim", 7, None, {"lease_id": 7}, []])
async def test_a_malformed_claim_is_refused_and_harms_nothing(lab: Lab, nonsense: Any) -> None:
    """What is not a claim is an error for whoever sent it; the task goes on."""
    task, view = await assigned(lab)
    with pytest.raises(WorkflowUpdateFailedError):
        await lab.client.get_workflow_handle(task.id).execute_update("claim", nonsense)
    assert (await ask(lab, task.id, lease_id=view.attempts[0].lease_id)).attempt == 1

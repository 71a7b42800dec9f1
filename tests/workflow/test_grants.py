"""Which leases a task takes, and what becomes of those that it does not take."""

from __future__ import annotations

import time

from temporalio.client import WorkflowHandle

from support.lab import Lab, eventually, slot, until, until_pool, until_status
from toolcrib.activities.pool_link import PoolLinks
from toolcrib.client import TaskHandle, Toolcrib
from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import Admission, QueueEntry
from toolcrib.workflows.contract import TASK_GRANT


async def admitted(lab: Lab, task_id: str) -> Admission:
    """Have a place or a lease given to a task that is not started yet, as a client does."""
    return await PoolLinks(lab.client).to("lab").admit(QueueEntry(task_id=task_id, constraints=Constraints()))


async def started(lab: Lab, crib: Toolcrib, task_id: str, admission: Admission) -> TaskHandle:
    """Start a task with an admission, as a client does."""
    request = {"goal": "echo", "pool": "lab"}
    await lab.client.start_workflow("ScheduledTask", args=[request, admission], id=task_id, task_queue="toolcrib-tasks")
    return crib.task(task_id)


async def offer(lab: Lab, task: TaskHandle, lease: Lease) -> None:
    """Offer a lease to a task, as its pool does, and wait until the task has seen it."""
    handle: WorkflowHandle[object, object] = lab.client.get_workflow_handle(task.id)
    before = (await handle.describe()).history_length
    await handle.signal(TASK_GRANT, lease)
    await eventually(handle.describe, lambda found: found.history_length >= before + 4)


async def lease_of(lab: Lab, crib: Toolcrib, task: TaskHandle) -> Lease:
    """Return the lease that a task holds, as its pool knows it."""
    view = await until(task, lambda view: view.status in {"assigned", "dispatched"})
    (attempt,) = [attempt for attempt in view.attempts if attempt.outcome is None]
    admission = await admitted(lab, task.id)
    assert admission.lease is not None
    assert admission.lease.id == attempt.lease_id
    return admission.lease


async def test_a_duplicate_of_the_open_lease_is_ignored(lab: Lab) -> None:
    """A lease that is delivered twice is one attempt; the device stays leased to it."""
    crib = await lab.pool()
    await lab.register_only()
    task = await crib.submit("echo")
    lease = await lease_of(lab, crib, task)
    for _ in range(2):
        await offer(lab, task, lease)
    assert [attempt.lease_id for attempt in (await task.status()).attempts] == [lease.id]
    assert [device.lease_id for device in (await crib.pool().show()).devices] == [lease.id]


async def test_a_duplicate_of_an_ended_lease_is_ignored(lab: Lab) -> None:
    """A lease that is delivered again after it has expired is not taken, and frees nobody's device."""
    crib = await lab.pool(claim_timeout=1, lease_ttl=3)
    await lab.register_only()
    task = await crib.submit("echo", max_attempts=9)
    first = await lease_of(lab, crib, task)
    await until(task, lambda view: len(view.attempts) == 2)
    await offer(lab, task, first)
    view = await task.status()
    assert view.attempts[0].outcome == "expired"
    assert [attempt.number for attempt in view.attempts] == list(range(1, len(view.attempts) + 1))
    assert [attempt.lease_id for attempt in view.attempts].count(first.id) == 1


async def test_a_lease_that_comes_too_late_is_given_back(lab: Lab) -> None:
    """A task that starts when its lease can no longer be claimed returns it, and gets another; the device serves on."""
    crib = await lab.pool(claim_timeout=1)
    await lab.register_only()
    admission = await admitted(lab, "task-slow")
    lease = admission.lease
    assert lease is not None

    async def now() -> float:
        return time.time()

    await eventually(now, lambda now: now > lease.claim_by)
    task = await started(lab, crib, "task-slow", admission)
    view = await until_status(task, "assigned")
    assert view.attempts[0].lease_id != lease.id
    pool = await crib.pool().show()
    assert (pool.leased, pool.devices[0].lease_id) == (1, view.attempts[-1].lease_id)


async def test_a_lease_of_another_task_is_not_taken_and_stays_its(lab: Lab) -> None:
    """A task that is offered a lease of somebody else's waits on, and the other keeps its device."""
    crib = await lab.pool()
    await lab.register_only()
    owner, other = await crib.submit("echo 1"), await crib.submit("echo 2")
    lease = await lease_of(lab, crib, owner)
    await offer(lab, other, lease)
    assert (await other.status()).status == "queued"
    pool = await until_pool(crib, lambda pool: [entry.id for entry in pool.queue] == [other.id])
    assert [device.task_id for device in pool.devices] == [owner.id]
    assert (await owner.status()).status == "assigned"


async def test_a_stale_admission_is_ignored(lab: Lab) -> None:
    """A task that starts after its admission's `start_by` asks for a place by itself, and waits in its turn."""
    crib = await lab.pool()
    first = await crib.submit("echo 1")
    nobodys = Admission(
        task_id="task-late",
        submitted_at=0.0,
        start_by=time.time() - 1,
        lease=Lease(
            task_id="task-late",
            attempt=1,
            host_id="nowhere",
            device_id="none",
            fencing=1,
            assigned_at=0.0,
            claim_by=1e12,
            ttl=15.0,
        ),
    )
    late = await started(lab, crib, "task-late", nobodys)
    pool = await until_pool(crib, lambda pool: pool.queued == 2)
    assert [entry.id for entry in pool.queue] == [first.id, "task-late"]
    assert ((await late.status()).status, (await late.status()).attempts) == ("queued", [])


async def test_a_malformed_admission_is_none(lab: Lab) -> None:
    """A task whose second argument is not an admission asks for a place by itself, and runs."""
    crib = await lab.pool()
    async with lab.host(devices=[slot()]):
        for number, nonsense in enumerate(["yes", {"task_id": 7}, [1, 2], {"start_by": "soon"}]):
            await lab.client.start_workflow(
                "ScheduledTask",
                args=[{"goal": "true", "pool": "lab"}, nonsense],
                id=f"task-{number}",
                task_queue="toolcrib-tasks",
            )
            await until_status(crib.task(f"task-{number}"), "done")

"""Lives of a ScheduledTask, acted out in a lab of their own so that their histories can be recorded."""

from __future__ import annotations

from typing import Any, Final

from temporalio.client import WorkflowExecutionStatus, WorkflowHandle

from support.lab import Lab, eventually, slot, until, until_pool, until_status
from support.runners import CONTROLLED, controlled
from toolcrib.activities.context import LeaseContext
from toolcrib.activities.pool_link import PoolLinks
from toolcrib.client import Group, TaskHandle, Toolcrib
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import HostSilent
from toolcrib.workflows.contract import TASK_GRANT

AnyRun = WorkflowHandle[Any, Any]

QUICK: Final[dict[str, Any]] = {"claim_timeout": 1, "lease_ttl": 3}


async def done_at_once(lab: Lab) -> list[AnyRun]:
    """An idle device: the task has its lease when it starts."""
    crib = await lab.pool()
    async with lab.host():
        task = await crib.submit("echo done", key="done-at-once", group=Group("nightly", "Nightly"))
        await until_status(task, "done")
    return [await _run_of(lab, task)]


async def done_through_the_queue(lab: Lab) -> list[AnyRun]:
    """No device: the task waits, and its lease is delivered to it."""
    crib = await lab.pool()
    task = await crib.submit("echo done", key="done-through-the-queue")
    async with lab.host():
        await until_status(task, "done")
    return [await _run_of(lab, task)]


async def failed(lab: Lab) -> list[AnyRun]:
    """The work says that it failed."""
    crib = await lab.pool()
    async with lab.host():
        task = await crib.submit("echo broken; exit 3", key="failed")
        await until_status(task, "failed")
    return [await _run_of(lab, task)]


async def expired_to_the_limit(lab: Lab) -> list[AnyRun]:
    """Nobody claims two leases; the task may have no third."""
    crib = await lab.pool(**QUICK, max_attempts=2)
    await lab.register_only()
    task = await crib.submit("true", key="expired-to-the-limit")
    await until_status(task, "failed")
    return [await _run_of(lab, task)]


async def expired_then_done(lab: Lab) -> list[AnyRun]:
    """Nobody claims the first lease; another host takes the second."""
    crib = await lab.pool(**QUICK)
    await lab.register_only("away")
    task = await crib.submit("true", key="expired-then-done")
    await until_status(task, "assigned")
    await PoolLinks(lab.client).to("lab").silence(HostSilent(host_id="away", incarnation=1, reason="it went"))
    async with lab.host():
        await until_status(task, "done")
    return [await _run_of(lab, task)]


async def cancelled_while_queued(lab: Lab) -> list[AnyRun]:
    """There is no device for it when it is cancelled."""
    crib = await lab.pool()
    return await _cancelled(lab, await crib.submit("true", key="cancelled-while-queued"), "queued")


async def cancelled_while_assigned(lab: Lab) -> list[AnyRun]:
    """Nobody has claimed its lease when it is cancelled."""
    crib = await lab.pool()
    await lab.register_only()
    return await _cancelled(lab, await crib.submit("true", key="cancelled-while-assigned"), "assigned")


async def cancelled_while_running(lab: Lab) -> list[AnyRun]:
    """Its work runs when it is cancelled, and its host confirms that it has ended."""
    crib = await lab.pool()
    async with lab.host():
        return await _cancelled(lab, await crib.submit("sleep 60", key="cancelled-while-running"), "dispatched")


async def returned_by_a_draining_host(lab: Lab) -> list[AnyRun]:
    """Its host stops while it runs, and gives the lease back; another host takes the next one."""
    crib = await lab.pool()
    async with lab.host():
        task = await crib.submit('[ "$TOOLCRIB_HOST_ID" = lab-2 ] || sleep 60', key="returned-by-a-draining-host")
        await until_status(task, "dispatched")
    await until_status(task, "queued")
    async with lab.host("lab-2"):
        await until_status(task, "done")
    return [await _run_of(lab, task)]


async def admitted_by_itself(lab: Lab) -> list[AnyRun]:
    """It was started by hand, without an admission."""
    crib = await lab.pool()
    async with lab.host():
        return await _started_by_hand(lab, crib, {"goal": "true", "pool": "lab"}, "done")


async def refused_by_a_full_queue(lab: Lab) -> list[AnyRun]:
    """It was started by hand, and there is no place for it."""
    crib = await lab.pool(max_queue_depth=1)
    await crib.submit("true")
    return await _started_by_hand(lab, crib, {"goal": "true", "pool": "lab"}, "failed")


async def refused_as_invalid(lab: Lab) -> list[AnyRun]:
    """It was started by hand, with a request that has an unknown field."""
    crib = await lab.pool()
    return await _started_by_hand(lab, crib, {"goal": "true", "colour": "red"}, "failed")


async def queue_timed_out(lab: Lab) -> list[AnyRun]:
    """It waits for as long as it may."""
    crib = await lab.pool()
    task = await crib.submit("true", key="queue-timed-out", queue_timeout=0.5)
    await until_status(task, "failed")
    return [await _run_of(lab, task)]


async def with_progress(lab: Lab) -> list[AnyRun]:
    """Its work reports progress a few times."""
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED):
        task = await crib.submit("with-progress", key="with-progress")
        await until_status(task, "dispatched")
        context = await _context_of("with-progress")
        for percent in (25, 50, 75):
            context.progress(percent / 100, f"{percent} percent")
            await until(task, lambda view, sent=percent / 100: view.progress == sent)  # type: ignore[misc]
        controlled.finish("with-progress", {"answer": 42})
        await until_status(task, "done")
    return [await _run_of(lab, task)]


async def grant_returned(lab: Lab) -> list[AnyRun]:
    """A lease is offered to it that it does not wait for, and then the right one."""
    crib = await lab.pool()
    task = await crib.submit("true", key="grant-returned")
    wrong = Lease(
        task_id=task.id,
        attempt=7,
        host_id="lab-1",
        device_id="slot-1",
        fencing=1,
        assigned_at=0.0,
        claim_by=1e12,
        ttl=15.0,
    )
    await lab.client.get_workflow_handle(task.id).signal(TASK_GRANT, wrong)
    async with lab.host(devices=[slot()]):
        await until_status(task, "done")
    await until_pool(crib, lambda pool: pool.leased == 0)
    return [await _run_of(lab, task)]


async def _cancelled(lab: Lab, task: TaskHandle, at: str) -> list[AnyRun]:
    await until_status(task, at)
    await task.cancel()
    await until_status(task, "cancelled")
    return [await _run_of(lab, task)]


async def _started_by_hand(lab: Lab, crib: Toolcrib, request: dict[str, Any], end: str) -> list[AnyRun]:
    await lab.client.start_workflow("ScheduledTask", request, id="task-by-hand", task_queue="toolcrib-tasks")
    task = crib.task("task-by-hand")
    await until_status(task, end)
    return [await _run_of(lab, task)]


async def _context_of(goal: str) -> LeaseContext:
    """Return what the runner of `goal` was given, once it has begun."""

    async def begun() -> list[LeaseContext]:
        return [context for work, context in controlled.calls if work == goal]

    return (await eventually(begun, bool))[0]


async def _run_of(lab: Lab, task: TaskHandle) -> AnyRun:
    """Return the task's workflow when it has closed, which may be a little later than the task's end."""
    handle = lab.client.get_workflow_handle(task.id)
    await eventually(handle.describe, lambda found: found.status is not WorkflowExecutionStatus.RUNNING)
    return handle


TASK_SCENARIOS: Final = (
    done_at_once,
    done_through_the_queue,
    failed,
    expired_to_the_limit,
    expired_then_done,
    cancelled_while_queued,
    cancelled_while_assigned,
    cancelled_while_running,
    returned_by_a_draining_host,
    admitted_by_itself,
    refused_by_a_full_queue,
    refused_as_invalid,
    queue_timed_out,
    with_progress,
    grant_returned,
)

"""Leases whose hosts do not keep to the rules, and tasks whose end comes twice at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.common import RawValue
from temporalio.worker import Worker

from support.lab import Lab, eventually, slot, until, until_pool, until_status
from support.runners import CONTROLLED, controlled
from toolcrib.activities.host_keys import HostKeyPair
from toolcrib.client import TaskHandle, Toolcrib
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import LeaseOrder, Report, ReportOutcome
from toolcrib.scheduling.names import host_queue
from toolcrib.worker.scheduler_role import scheduler_role
from toolcrib.workflows.contract import RUN_LEASE


@activity.defn(name=RUN_LEASE)
async def heartbeat_only(order: LeaseOrder) -> Report:
    """Be a host that shows that it lives, and never claims."""
    while True:
        activity.heartbeat()
        await asyncio.sleep(0.2)


def unclaimed(lease: Lease, key: HostKeyPair) -> Any:
    """Say that the work was done, without having asked for it."""
    return key.signed_report(Report(lease_id=lease.id, outcome=ReportOutcome.DONE, result="made up"))


def of_another(lease: Lease, key: HostKeyPair) -> Any:
    """Report a lease that nobody has."""
    return key.signed_report(Report(lease_id="task-other.1.1", outcome=ReportOutcome.DONE, result="made up"))


def forged(lease: Lease, key: HostKeyPair) -> Any:
    """Report without the host's signature."""
    return Report(lease_id=lease.id, outcome=ReportOutcome.DONE, result="made up")


def nonsense(lease: Lease, key: HostKeyPair) -> Any:
    """Answer what nobody understands."""
    return {"well": "done"}


def deep(lease: Lease, key: HostKeyPair) -> Any:
    """Answer what cannot even be read."""
    return RawValue(Payload(metadata={"encoding": b"json/plain"}, data=b"[" * 500 + b"]" * 500))


@asynccontextmanager
async def odd_host(lab: Lab, run_lease: Any) -> AsyncIterator[None]:
    """Have a host `lab-1` that runs leases in a way of its own."""
    async with Worker(lab.client, task_queue=host_queue("lab-1"), activities=[run_lease]):
        await lab.register_only()
        yield


async def test_a_host_that_never_claims_does_not_keep_the_device(lab: Lab) -> None:
    """A lease that only heartbeats ends within claim window + ttl + 2 s, and the device serves the next task."""
    crib = await lab.pool(claim_timeout=1, lease_ttl=3)
    async with odd_host(lab, heartbeat_only):
        task, later = await crib.submit("echo 1", max_attempts=1), await crib.submit("echo 2")
        (attempt,) = (await until_status(task, "failed")).attempts
        assert (attempt.outcome, attempt.claimed_at) == ("expired", None)
        assert attempt.ended_at is not None
        assert 4.0 <= (attempt.ended_at - attempt.assigned_at).total_seconds() <= 6.0
        await until_status(later, "assigned")


@pytest.mark.parametrize(
    ("say", "reason"),
    [
        (unclaimed, "the host reported a result without a claim"),
        (of_another, "the host reported another lease"),
        (forged, "its report is not signed with the key of host lab-1"),
        (nonsense, "the host's report cannot be understood"),
        (deep, "the host's report cannot be understood"),
    ],
)
async def test_a_result_that_cannot_be_one_is_not_believed(lab: Lab, say: Any, reason: str) -> None:
    """The attempt ends as refused, the result is not the task's, and the device comes back."""

    @activity.defn(name=RUN_LEASE)
    async def run_lease(order: LeaseOrder) -> Any:
        return say(order.lease, lab.key())

    crib = await lab.pool()
    async with odd_host(lab, run_lease):
        view = await until_status(await crib.submit("echo", max_attempts=1), "failed")
        await until_pool(crib, lambda pool: pool.leased == 0)
    assert [(attempt.outcome, attempt.reason) for attempt in view.attempts] == [("refused", reason)]
    assert view.result is None


async def test_s1_32_a_host_runs_what_was_assigned_to_its_devices(lab: Lab) -> None:
    """Of two hosts each runs the tasks whose device is its own, on that device."""
    crib = await lab.pool()
    async with (
        lab.host("lab-1", [slot("a"), slot("b")], goal=CONTROLLED),
        lab.host("lab-2", [slot("a")], goal=CONTROLLED),
    ):
        tasks = {f"s1-32-{n}": await crib.submit(f"s1-32-{n}") for n in range(3)}
        views = {goal: await until_status(task, "dispatched") for goal, task in tasks.items()}
        for goal in tasks:
            controlled.finish(goal)
        await asyncio.gather(*(task.result() for task in tasks.values()))
    ran = {goal: (context.lease.host_id, context.device.id) for goal, context in controlled.calls if goal in tasks}
    assert ran == {goal: (view.host_id, (view.device_id or "").rpartition("/")[2]) for goal, view in views.items()}
    assert sorted(ran.values()) == [("lab-1", "a"), ("lab-1", "b"), ("lab-2", "a")]


@pytest.mark.parametrize("first", ["result", "cancel"])
async def test_a_cancel_meets_a_result(client: Client, tmp_path: Path, first: str) -> None:
    """If both wait for the scheduler when it comes back there is one end, and the device comes back, too."""
    goal = f"meets-{first}"
    lab = Lab(client, Toolcrib(client), tmp_path)
    async with asyncio.timeout(60):
        async with scheduler_role(client):
            crib = await lab.pool()
            host = lab.host(goal=CONTROLLED)
            await host.__aenter__()
            task = await crib.submit(goal)
            await until_status(task, "dispatched")
        if first == "cancel":
            await task.cancel()
        controlled.finish(goal, "made in time")
        await _completed(client, task)
        await task.cancel()
        async with scheduler_role(client):
            view = await until(task, lambda view: view.ended)
            pool = await until_pool(crib, lambda pool: pool.leased == 0)
            await host.__aexit__(None, None, None)
    assert view.status == ("done" if first == "result" else view.status)
    assert [attempt.outcome for attempt in view.attempts] == [view.status]
    assert [(device.state, device.reason) for device in pool.devices] == [("idle", None)]


async def _completed(client: Client, task: TaskHandle) -> None:
    """Wait until the server has the result of the task's lease."""

    async def events() -> list[int]:
        history = await client.get_workflow_handle(task.id).fetch_history()
        return [event.event_type for event in history.events]

    ends = {EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED}
    await eventually(events, lambda found: not ends.isdisjoint(found))

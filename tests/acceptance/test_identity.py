"""Hosts prove who they are. Rows S1-43 to S1-45, S1-59 to S1-62, S1-64, S1-65."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from typing import Any

import pytest
from structlog.testing import capture_logs
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import AsyncActivityHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from support.lab import Lab, eventually, slot, until, until_pool, until_status
from support.runners import CONTROLLED, controlled
from support.servers import connect
from toolcrib.activities.pool_link import PoolLinks
from toolcrib.client import TaskHandle, TaskView
from toolcrib.scheduling.errors import BadSignature, HostSuperseded, NotEnrolled
from toolcrib.scheduling.messages import Assignment, HostKey, HostSnapshot, LeaseOrder, Report, ReportOutcome
from toolcrib.scheduling.names import host_queue
from toolcrib.worker.host_file import HostFile
from toolcrib.worker.host_role import host_role
from toolcrib.worker.runner_names import RunnerNames
from toolcrib.workflows.contract import RUN_LEASE, TASK_ON_RECORD

QUICK: dict[str, Any] = {"claim_timeout": 1, "lease_ttl": 3}


class Thief:
    """Polls a host's queue without its key, and keeps what it gets there."""

    def __init__(self) -> None:
        self.got: list[tuple[LeaseOrder, AsyncActivityHandle]] = []

    @activity.defn(name=RUN_LEASE)
    async def run_lease(self, order: LeaseOrder) -> Report:
        """Take a lease, and do nothing with it."""
        self.got.append((order, activity.client().get_async_activity_handle(task_token=activity.info().task_token)))
        activity.raise_complete_async()

    @asynccontextmanager
    async def polling(self, lab: Lab) -> AsyncIterator[None]:
        """Poll the queue of host `lab-1`."""
        async with Worker(lab.client, task_queue=host_queue("lab-1"), activities=[self.run_lease]):
            yield

    async def lease(self) -> tuple[LeaseOrder, AsyncActivityHandle]:
        """Return the first lease that it got."""

        async def got() -> Any:
            return self.got

        return (await eventually(got, bool))[0]  # type: ignore[no-any-return]


async def ask(lab: Lab, view: TaskView, **claim: Any) -> Assignment:
    """Claim the task's newest lease as its host does, but for what `claim` changes afterwards."""
    said = lab.key().claim(view.attempts[-1].lease_id, "mine", 1, "here")
    handle: Any = lab.client.get_workflow_handle(view.id)
    answer: Assignment = await handle.execute_update("claim", {**asdict(said), **claim}, result_type=Assignment)
    return answer


async def refusal(lab: Lab, view: TaskView, **claim: Any) -> tuple[str | None, int]:
    """Return by which code a claim is refused, and how many events that wrote."""
    handle: Any = lab.client.get_workflow_handle(view.id)
    before = (await handle.describe()).history_length
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await ask(lab, view, **claim)
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause.type, (await handle.describe()).history_length - before


async def assigned(lab: Lab, **options: Any) -> tuple[TaskHandle, TaskView]:
    """Return a task whose lease nobody but the test will claim."""
    crib = await lab.pool(**options)
    await lab.register_only()
    task = await crib.submit("echo secret")
    return task, await until_status(task, "assigned")


async def test_s1_43_an_unauthenticated_claim_is_refused(lab: Lab) -> None:
    """Without a signature, with another host's, and with one of another claim: by name, and without a trace."""
    _, view = await assigned(lab)
    lease_id = view.attempts[0].lease_id
    for signature in ("", lab.key("b").claim(lease_id, "mine", 1, "here").signature):
        assert await refusal(lab, view, signature=signature) == ("bad_signature", 0)
    assert await refusal(lab, view, claim_id="another") == ("bad_signature", 0)
    assert (await ask(lab, view)).goal == "echo secret"


async def test_s1_44_another_host_cannot_claim(lab: Lab) -> None:
    """A host that is enrolled itself gets nothing that was assigned to another, whatever it calls itself."""
    _, view = await assigned(lab)
    await lab.enroll("lab-2")
    other = asdict(lab.key("lab-2").claim(view.attempts[0].lease_id, "mine", 1, "here"))
    assert await refusal(lab, view, **other) == ("not_owner", 0)
    assert await refusal(lab, view, **{**other, "host_id": "lab-1"}) == ("bad_signature", 0)


async def test_s1_45_an_expired_attempt_cannot_be_claimed(lab: Lab) -> None:
    """After its window the attempt is over, and its claim is refused by name."""
    task, view = await assigned(lab, **QUICK, max_attempts=9)
    await until(task, lambda view: view.attempts[0].outcome == "expired")
    assert (await refusal(lab, view))[0] in ("lease_expired", "lease_superseded")


async def test_who_polls_a_host_s_queue_without_its_key_ends_no_task(lab: Lab) -> None:
    """It gets no goal, its report ends no task, and costs one attempt, with the reason on record."""
    crib, thief = await lab.pool(), Thief()
    await lab.register_only(devices=[slot()])
    async with thief.polling(lab):
        task = await crib.submit("echo secret", max_attempts=2)
        order, handle = await thief.lease()
        assert "secret" not in str(order)
        view = await task.status()
        assert await refusal(lab, view, signature="") == ("bad_signature", 0)
        await handle.complete(Report(lease_id=order.lease.id, outcome=ReportOutcome.DONE, result="mine"))
        await until(task, lambda view: view.attempts[0].outcome is not None)
    async with lab.host():
        view = await until_status(task, "done")
    assert [attempt.outcome for attempt in view.attempts] == ["refused", "done"]
    assert view.attempts[0].reason == "its report is not signed with the key of host lab-1"
    assert view.result["output"] == "secret\n"


async def test_no_signature_from_a_history_is_good_for_anything(lab: Lab) -> None:
    """Not the claim of one lease for the next, not a report for another lease, and no registration twice."""
    crib = await lab.pool(**QUICK)
    async with lab.host(goal=CONTROLLED):
        first = await crib.submit("seen-1")
        seen = (await until_status(first, "dispatched")).attempts[0]
        controlled.finish("seen-1", 1)
        await first.result()
    said = await _claims_in_the_history_of(lab, first)
    second = await crib.submit("echo secret")
    await lab.register_only()
    view = await until_status(second, "assigned")
    assert said["lease_id"] == seen.lease_id
    assert (await refusal(lab, view, **said))[0] == "lease_superseded"
    moved = {**said, "lease_id": view.attempts[0].lease_id}
    assert (await refusal(lab, view, **moved))[0] == "bad_signature"


async def _claims_in_the_history_of(lab: Lab, task: TaskHandle) -> dict[str, Any]:
    history = await lab.client.get_workflow_handle(task.id).fetch_history()
    (accepted,) = [
        event.workflow_execution_update_accepted_event_attributes
        for event in history.events
        if event.event_type is EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED
    ]
    payloads = accepted.accepted_request.input.args.payloads
    (claim,) = await lab.client.data_converter.decode(payloads, [dict])
    return dict(claim)


async def test_s1_59_a_forged_result_of_a_claimed_lease_is_refused(lab: Lab) -> None:
    """The host is at work: the device is given to nobody until it has noticed, and the real result wins."""
    crib = await lab.pool(lease_ttl=4, max_attempts=3)
    async with lab.host(goal=CONTROLLED):
        task = await crib.submit("forged")
        view = await until_status(task, "dispatched")
        found = await lab.client.get_workflow_handle(task.id).describe()
        (pending,) = found.raw_description.pending_activities
        by_id = lab.client.get_async_activity_handle(
            workflow_id=task.id, run_id=found.run_id, activity_id=pending.activity_id
        )
        forged = Report(lease_id=view.attempts[0].lease_id, outcome=ReportOutcome.DONE, result="forged")
        await by_id.complete(forged)
        refused = (await until(task, lambda view: view.attempts[0].outcome is not None)).attempts[0]
        assert (await crib.pool().show()).leased == 1
        again = (await until(task, lambda view: view.attempt == 2)).attempts[1]
        await until_status(task, "dispatched")
        controlled.finish("forged", "real")
        assert await task.result() == "real"
    assert refused.outcome == "refused"
    assert refused.ended_at is not None
    assert (again.assigned_at - refused.ended_at).total_seconds() >= 3.9


@pytest.mark.parametrize(
    ("outcome", "end"), [(ReportOutcome.DONE, "done"), (ReportOutcome.FAILED, "failed")], ids=["s1_59", "s1_60"]
)
async def test_s1_61_a_repeated_report_changes_nothing(lab: Lab, outcome: ReportOutcome, end: str) -> None:
    """The second one is not taken; asked what is on record the task says: just this. There was one transition."""
    crib, thief = await lab.pool(), Thief()
    await lab.register_only()
    async with thief.polling(lab):
        task = await crib.submit("echo")
        order, handle = await thief.lease()
        await ask(lab, await task.status())
        said = Report(lease_id=order.lease.id, outcome=outcome, result=7, claim_id="mine", incarnation=1)
        said = lab.key().signed_report(said)
        await handle.complete(said)
        view = await until_status(task, end)
        with pytest.raises(RPCError) as caught:
            await handle.complete(said)
    assert caught.value.status is RPCStatusCode.NOT_FOUND
    assert await on_record(lab, task, said) is None
    other = lab.key().signed_report(replace(said, result=8))
    assert (await on_record(lab, task, other))["code"] == "report_conflict"
    assert await task.status() == view


async def on_record(lab: Lab, task: TaskHandle, report: Report) -> Any:
    """Ask a task, which may have ended, why a report is not on record."""
    return await lab.client.get_workflow_handle(task.id).query(TASK_ON_RECORD, report)


async def test_s1_62_a_task_ends_exactly_once(lab: Lab) -> None:
    """Its history has one end of its lease, and one end of itself."""
    crib = await lab.pool()
    async with lab.host():
        task = await crib.submit("true")
        await task.result()
    history = await lab.client.get_workflow_handle(task.id).fetch_history()
    kinds = [EventType.Name(event.event_type).removeprefix("EVENT_TYPE_") for event in history.events]
    assert [kind for kind in kinds if kind.startswith("ACTIVITY_TASK_") and kind.endswith("ED")] == [
        "ACTIVITY_TASK_SCHEDULED",
        "ACTIVITY_TASK_STARTED",
        "ACTIVITY_TASK_COMPLETED",
    ]
    assert [kind for kind in kinds if kind.startswith("WORKFLOW_EXECUTION_") and "UPDATE" not in kind] == [
        "WORKFLOW_EXECUTION_STARTED",
        "WORKFLOW_EXECUTION_COMPLETED",
    ]


async def test_s1_64_s1_65_a_report_of_a_superseded_lease_changes_nothing(lab: Lab) -> None:
    """A host that comes back after its lease was lost is told so; the later attempt's result is the task's."""
    crib, thief = await lab.pool(**QUICK, max_attempts=3), Thief()
    await lab.register_only()
    async with thief.polling(lab):
        task = await crib.submit("superseded")
        order, handle = await thief.lease()
        await ask(lab, await task.status())
        await until(task, lambda view: view.attempts[0].outcome == "expired")
    late = Report(lease_id=order.lease.id, outcome=ReportOutcome.DONE, result="late", claim_id="mine", incarnation=1)
    late = lab.key().signed_report(late)
    async with lab.host("lab-2", goal=CONTROLLED):
        before = await until_status(task, "dispatched")
        with pytest.raises(RPCError) as caught:
            await handle.complete(late)
        assert caught.value.status is RPCStatusCode.NOT_FOUND
        assert (await on_record(lab, task, late))["code"] == "lease_superseded"
        assert (await task.status()).attempts == before.attempts
        controlled.finish("superseded", "real")
        assert await task.result() == "real"


# ---- registration


async def test_only_an_enrolled_host_registers(lab: Lab) -> None:
    """With its own key, and each registration once: one that was seen brings nobody back, and replaces nobody."""
    crib = await lab.pool()
    link, key = PoolLinks(lab.client).to("lab"), lab.key()
    said = HostSnapshot(host_id="lab-1", instance="one", devices=(slot(),), serial=2**40)
    with pytest.raises(NotEnrolled):
        await link.register(key.signed_snapshot(said, "lab"))
    await lab.enroll()
    with pytest.raises(BadSignature):
        await link.register(lab.key("b").signed_snapshot(said, "lab"))
    assert (await link.register(key.signed_snapshot(said, "lab"))).incarnation == 1
    newer = key.signed_snapshot(replace(said, instance="two", serial=2**40 + 1), "lab")
    assert (await link.register(newer)).incarnation == 2
    with pytest.raises(HostSuperseded):
        await link.register(key.signed_snapshot(said, "lab"))
    (host,) = await crib.pool().hosts()
    assert (host.incarnation, host.public_key) == (2, key.public)


async def test_a_revoked_host_gets_no_more_leases(lab: Lab) -> None:
    """What runs there may finish; with its key enrolled again it serves again."""
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED):
        running = await crib.submit("revoked")
        await until_status(running, "dispatched")
        await crib.pool().revoke_host("lab-1")
        waiting = await crib.submit("after-revoked")
        controlled.finish("revoked", "finished")
        assert await running.result() == "finished"
        pool = await until_pool(crib, lambda pool: pool.leased == 0)
        assert [device.state for device in pool.devices] == ["offline"]
        assert (await waiting.status()).status == "queued"
        await lab.enroll()
        await until_status(waiting, "dispatched")
        controlled.finish("after-revoked")
        await waiting.result()


# ---- workers that follow each other


async def test_two_live_workers_of_a_host_on_two_machines(lab: Lab) -> None:
    """The newer one serves the host; the older one is told, and its work is over before the device is used again."""
    crib = await lab.pool(lease_ttl=3, max_attempts=3)
    async with lab.host(goal=CONTROLLED) as older:
        task = await crib.submit("two-machines")
        await until_status(task, "dispatched")
        other = await connect(lab.client.service_client.config.target_host, lab.client.namespace)
        async with replace(lab, client=other).host(goal=CONTROLLED, machine="there") as newer:
            lost = (await until(task, lambda view: view.attempts[0].outcome is not None)).attempts[0]
            async with asyncio.timeout(20):
                await older.superseded.wait()
            assert isinstance(older.fault, HostSuperseded)
            await until(task, lambda view: view.attempt == 2 and view.status == "dispatched")
            assert newer.fault is None
            assert (await crib.pool().hosts())[0].incarnation == 2
            controlled.finish("two-machines", "at last")
            assert await task.result() == "at last"
            second = (await task.status()).attempts[1]
    assert (lost.outcome, lost.reason) == ("expired", "another machine took its host's place")
    assert lost.ended_at is not None
    assert (second.assigned_at - lost.ended_at).total_seconds() >= 2.9


async def test_a_worker_says_why_it_is_not_registered_and_tries_on(lab: Lab) -> None:
    """Enrolled with a foreign key, not at all, and with its own: it says each once, and needs no new start."""
    await lab.pool()
    link, own = PoolLinks(lab.client).to("lab"), lab.key()
    await link.enroll(HostKey(host_id="lab-1", public_key=lab.key("lab-2").public))
    file = HostFile(id="lab-1", devices=(slot(),), pool="lab", runners=RunnerNames(goal="shell"))
    with capture_logs() as logs:

        async def said() -> list[str]:
            return [str(entry["reason"]) for entry in logs if entry["event"] == "not registered yet"]

        async with host_role(lab.client, file, lab.folder, drain=0.0, locks=lab.folder / "locks") as agent:
            await eventually(said, lambda found: len(found) == 1)
            await link.enroll(HostKey(host_id="lab-1", public_key=None))
            await eventually(said, lambda found: len(found) == 2)
            await link.enroll(HostKey(host_id="lab-1", public_key=own.public))
            async with asyncio.timeout(30):
                await agent.registered.wait()
        assert await said() == [
            "host 'lab-1' is enrolled in pool 'lab' with another key than this machine's",
            "host 'lab-1' is not enrolled in pool 'lab'",
        ]


async def test_a_host_that_its_pool_cannot_take_says_so(lab: Lab) -> None:
    """It is not enrolled in vain: it waits, with the reason in its log."""
    await lab.pool()
    await lab.enroll()
    many = tuple(slot(f"slot-{n}", tags=[f"{n}-{tag}-{'x' * 120}" for tag in range(9)]) for n in range(200))
    file = HostFile(id="lab-1", devices=many, pool="lab", runners=RunnerNames(goal="shell"))
    with capture_logs() as logs:

        async def said() -> list[Any]:
            return [entry for entry in logs if entry["event"] == "not registered yet"]

        async with host_role(lab.client, file, lab.folder, drain=0.0, locks=lab.folder / "locks") as agent:
            (entry,) = await eventually(said, bool)
            assert agent.fault is None
        assert "limit" in entry["reason"]
        assert entry["hint"]

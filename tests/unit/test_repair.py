"""Leases whose tasks are gone or were reset, and pools that begin without what was known before."""

from __future__ import annotations

from typing import Any

import pytest

from support.rules import (
    START,
    busy_pool,
    claim,
    device,
    entry,
    holders,
    key_of,
    lease,
    pool,
    queued,
    register,
    settlement,
    task,
)
from toolcrib.scheduling import repair
from toolcrib.scheduling.asking import CHECK_AFTER, SURVEY_EVERY
from toolcrib.scheduling.device import DeviceState
from toolcrib.scheduling.enrollment import standing_of
from toolcrib.scheduling.errors import LeaseExpired
from toolcrib.scheduling.lease import Lease, Outcome
from toolcrib.scheduling.messages import (
    AskedAfter,
    DeviceOrder,
    HostOrder,
    HostSilent,
    LeaseEnd,
    SettleKind,
    Settlement,
)
from toolcrib.scheduling.pool_view import pool_view, reasons_for
from toolcrib.scheduling.scheduler import TaskScheduler
from toolcrib.scheduling.task import Offer, Status

LATER = START + 100.0
TTL = 15.0
OPENS = START + 45.0


@pytest.fixture
def scheduler() -> TaskScheduler:
    """One device, which `t1` holds; `t2` and `t3` wait."""
    return busy_pool()


@pytest.fixture
def rebuilt() -> TaskScheduler:
    """A pool that others of its name came before, and of which only that is known."""
    return TaskScheduler(repair.rebuilt(pool().state, START))


def state(scheduler: TaskScheduler) -> DeviceState:
    """Return the state of the one device."""
    (only,) = scheduler.devices
    return only.state


def lost(scheduler: TaskScheduler, *task_ids: str) -> dict[str, str]:
    """Have Temporal say that these tasks' workflows are closed, and return why which were taken back."""
    return scheduler.asked_after(AskedAfter(gone=task_ids), LATER, LATER + 1)


# ---- tasks that are gone


def test_what_a_task_that_is_gone_had_is_taken_back_and_said_why(scheduler: TaskScheduler) -> None:
    """Its place goes at once, its device when the work must have ended: then it is the next one's."""
    out = scheduler.held[0]
    assert lost(scheduler, "t1", "t2", "nobody") == {
        "t1": f"its workflow was ended; it held lease {out.id} of h/d",
        "t2": "its workflow was ended; it was queued",
    }
    assert (queued(scheduler), state(scheduler)) == (["t3"], DeviceState.RELEASING)
    assert scheduler.next_wake() == LATER + 1 + TTL
    assert not scheduler.assign(LATER + TTL)
    assert [granted.task_id for granted in scheduler.assign(LATER + 1 + TTL)] == ["t3"]
    assert scheduler.held[0].fencing > out.fencing


def test_a_task_without_a_workflow_has_its_time_to_be_started(scheduler: TaskScheduler) -> None:
    """It may be that its client has not got to it yet; one that was deleted is found a little later."""
    missing = AskedAfter(missing=("t1", "t2"))
    assert not scheduler.asked_after(missing, START + CHECK_AFTER - 1, START + CHECK_AFTER)
    assert list(scheduler.asked_after(missing, START + CHECK_AFTER, START + CHECK_AFTER)) == ["t1", "t2"]


def test_s33_a_releasing_device_is_free_when_its_host_says_so(scheduler: TaskScheduler) -> None:
    """The host that works on the lease no more knows better than the clock; one that still does keeps the device."""
    out = scheduler.held[0]
    lost(scheduler, "t1")
    assert standing_of(scheduler.records, "h").tell
    register(scheduler, "h", [device("d")], LATER + 2, leases=(out,), served={"d": out.fencing})
    assert state(scheduler) is DeviceState.RELEASING
    register(scheduler, "h", [device("d")], LATER + 3, served={"d": out.fencing})
    assert holders(scheduler) == {"t2": "d"}
    assert not standing_of(scheduler.records, "h").tell


def test_a_releasing_device_is_free_when_its_lease_is_given_back(scheduler: TaskScheduler) -> None:
    """A last word of the task that comes after all is true: its host had ended the work."""
    out = scheduler.held[0]
    lost(scheduler, "t1")
    scheduler.settle([settlement(SettleKind.RELEASE, out)], LATER + 2)
    assert holders(scheduler) == {"t2": "d"}


def test_k05_a_releasing_lease_counts_against_the_cap() -> None:
    """Its work may still run."""
    scheduler = pool(device("d1"), device("d2"), max_concurrent=1)
    scheduler.admit([entry("t1"), entry("t2")], START)
    lost(scheduler, "t1")
    assert queued(scheduler) == ["t2"]
    scheduler.assign(LATER + 1 + TTL)
    assert holders(scheduler) == {"t2": "d1"}


def test_an_id_that_comes_again_waits_for_the_end_of_its_last_life(scheduler: TaskScheduler) -> None:
    """A task that was deleted and is submitted again gets no lease of its namesake."""
    lost(scheduler, "t1")
    (answer,) = scheduler.admit([entry("t1")], LATER + 2)
    assert (answer.lease, answer.refused) == (None, None)
    assert queued(scheduler) == ["t2", "t3"]
    scheduler.assign(LATER + 2 + TTL)
    assert "t1" in [*queued(scheduler), *holders(scheduler)]


# ---- tasks that were reset


def reset(scheduler: TaskScheduler, task_id: str, now: float, before: float | None = None) -> None:
    """Have a task say that it was reset."""
    again = entry(task_id, attempts=0, known=True)
    message = Settlement(kind=SettleKind.RESET, task_id=task_id, before=now if before is None else before, entry=again)
    scheduler.settle([message], now)


def test_e03_a_task_that_is_reset_queues_when_its_work_must_have_ended(scheduler: TaskScheduler) -> None:
    """It comes back to its old place, and gets a new lease; saying it twice changes nothing."""
    out = scheduler.held[0]
    for _ in range(2):
        reset(scheduler, "t1", START + 10)
    assert (queued(scheduler), state(scheduler)) == (["t2", "t3"], DeviceState.RELEASING)
    assert scheduler.admit([entry("t1", known=True)], START + 11)[0].lease is None
    (granted,) = scheduler.assign(START + 10 + TTL)
    assert (granted.task_id, granted.attempt) == ("t1", 1)
    assert granted.fencing > out.fencing


@pytest.mark.parametrize("ahead", [0.0, 3.0])
def test_a_task_gets_no_lease_that_is_not_later_than_its_reset(ahead: float) -> None:
    """It would refuse one, and the pool would hold it for ever; the clock that timed the reset may be ahead."""
    scheduler = pool(device("d1"))
    reset(scheduler, "t1", LATER, before=LATER + ahead)
    assert queued(scheduler) == ["t1"]
    wake = scheduler.next_wake()
    assert wake is not None
    assert LATER + ahead < wake < LATER + ahead + 1
    (granted,) = scheduler.assign(wake)
    assert granted.assigned_at > LATER + ahead


def test_a_reset_that_is_told_late_does_not_touch_a_newer_lease(scheduler: TaskScheduler) -> None:
    """What was granted after the reset is the new run's."""
    reset(scheduler, "t1", START + 10)
    scheduler.assign(START + 10 + TTL)
    reset(scheduler, "t1", START + 40, before=START + 10)
    assert holders(scheduler) == {"t1": "d"}


def test_a_queued_task_that_is_reset_keeps_its_place(scheduler: TaskScheduler) -> None:
    """There is nothing to end first."""
    reset(scheduler, "t2", START + 10)
    assert queued(scheduler) == ["t2", "t3"]


def test_a_task_that_was_reset_and_cancelled_queues_no_more(scheduler: TaskScheduler) -> None:
    """Its old work ends all the same before the device is anybody's."""
    reset(scheduler, "t1", START + 10)
    scheduler.settle([Settlement(kind=SettleKind.WITHDRAW, task_id="t1")], START + 11)
    assert state(scheduler) is DeviceState.RELEASING
    scheduler.assign(START + 10 + TTL)
    assert holders(scheduler) == {"t2": "d"}


def test_e03_a_reset_record_takes_no_lease_from_before() -> None:
    """An attempt under way is over and not counted, its lease cannot be claimed, and older grants count for nothing."""
    record = task()
    old = lease()
    record.offer(old, START)
    record.distrust(START + 5)
    record.begin_anew(START + 5)
    assert (record.status, record.counted_attempts) == (Status.QUEUED, 0)
    assert (record.attempts[0].outcome, record.attempts[0].reason) == (Outcome.RETURNED, "the task was reset")
    with pytest.raises(LeaseExpired):
        record.claim(claim(old), START + 6)
    assert record.offer(lease(2, assigned_at=START + 4), START + 6) is Offer.DUPLICATE
    assert record.offer(lease(2, assigned_at=START + 6, fencing=999), START + 6) is Offer.TAKEN


def test_a_task_that_had_ended_before_the_reset_stays_ended() -> None:
    """What is on record stands."""
    record = task()
    record.cancel(START)
    record.distrust(START + 5)
    record.begin_anew(START + 5)
    assert record.status is Status.CANCELLED
    assert record.resetting().entry is None


# ---- pools that were rebuilt


def running(task_id: str = "t", fencing: int = 100) -> Lease:
    """Return a lease of device `h/d` that an earlier pool has granted."""
    return lease(task_id=task_id, fencing=fencing)


def test_a_rebuilt_pool_grants_nothing_until_older_leases_have_run_out(rebuilt: TaskScheduler) -> None:
    """And tells those who wait for how long."""
    register(rebuilt, "h", [device("d")])
    rebuilt.admit([entry("t1")], START + 1)
    assert reasons_for(rebuilt, ["t1"])["t1"].code == "backoff"
    assert pool_view(rebuilt).opens_at is not None
    assert not rebuilt.assign(OPENS - 1)
    assert rebuilt.next_wake() == OPENS
    assert [granted.task_id for granted in rebuilt.assign(OPENS)] == ["t1"]
    assert pool_view(rebuilt).opens_at is None


def test_what_was_out_of_service_is_so_in_a_rebuilt_pool() -> None:
    """A person took it out, and only a person puts it back: reset, a pool knows that of the time before."""
    before = pool(device("good"), device("broken"), device("drained"))
    before.order(DeviceOrder(key="h/broken", kind="quarantine", reason="its screen is broken"), START)
    before.order(DeviceOrder(key="h/drained", kind="drain"), START)
    again = TaskScheduler(repair.rebuilt(before.records, START))
    assert [(one.key, one.state) for one in again.devices] == [("h/broken", "quarantined"), ("h/drained", "offline")]
    register(again, "h", [device("good"), device("broken"), device("drained")], START + 1)
    assert [view.reason for view in pool_view(again).devices if view.state == "quarantined"] == ["its screen is broken"]
    again.admit([entry(f"t{n}") for n in range(3)], START + 1)
    assert [lease.device_id for lease in again.assign(OPENS)] == ["good"]


def test_a_device_that_was_out_of_service_and_is_no_more_there_is_forgotten() -> None:
    """As in any pool, when its host registers without it."""
    before = pool(device("good"), device("broken"))
    before.order(DeviceOrder(key="h/broken", kind="quarantine", reason="its screen is broken"), START)
    again = TaskScheduler(repair.rebuilt(before.records, START))
    register(again, "h", [device("good")], START + 1)
    assert [one.key for one in again.devices] == ["h/good"]


def test_a_rebuilt_pool_looks_for_its_tasks_until_it_is_open(rebuilt: TaskScheduler) -> None:
    """At once, every now and then, and once more when it opens; then it may sleep."""
    looked = []
    while (at := rebuilt.next_check()) is not None:
        looked.append(at - START)
        rebuilt.asked_after(AskedAfter(strangers=("t1",)), at, at)
    assert looked == [0.0, *[SURVEY_EVERY * n for n in range(1, 5)], 45.0]
    assert not rebuilt.busy


@pytest.mark.parametrize("host_first", [True, False])
def test_a_task_that_holds_a_lease_keeps_it(rebuilt: TaskScheduler, host_first: bool) -> None:
    """The pool learns of the lease from its task, before or after its host is back, and hears of its end."""
    out = running()
    told: dict[str, Any] = {"incarnation": 4, "leases": (out,), "served": {"d": out.fencing}}
    if host_first:
        assert register(rebuilt, "h", [device("d")], **told).incarnation == 4
        assert state(rebuilt) is DeviceState.RELEASING
    rebuilt.admit([entry("t", known=True, lease=out)], START + 1)
    if not host_first:
        register(rebuilt, "h", [device("d")], START + 2, **told)
    assert (holders(rebuilt), state(rebuilt)) == ({"t": "d"}, DeviceState.LEASED)
    rebuilt.admit([entry("t2")], START + 3)
    end = LeaseEnd(lease_id=out.id, served=True)
    rebuilt.settle([settlement(SettleKind.RELEASE, out, end=end)], START + 60)
    assert holders(rebuilt) == {"t2": "d"}
    assert rebuilt.held[0].fencing > out.fencing


def test_a_lease_that_only_its_host_knows_keeps_its_device(rebuilt: TaskScheduler) -> None:
    """Until the host says that it has ended, or falls silent, or its task gives it back."""
    out = running(fencing=10**16)
    register(rebuilt, "h", [device("d")], leases=(out,), served={"d": out.fencing})
    rebuilt.admit([entry("t2")], START)
    assert not rebuilt.assign(OPENS)
    (view,) = pool_view(rebuilt).devices
    assert (view.state, view.lease_id, view.reason) == (
        "releasing",
        out.id,
        f"its host still works on lease {out.id}",
    )
    assert standing_of(rebuilt.records, "h").tell
    register(rebuilt, "h", [device("d")], OPENS + 1, served={"d": out.fencing})
    assert holders(rebuilt) == {"t2": "d"}
    assert rebuilt.held[0].fencing == out.fencing + 1


def test_a_lease_that_only_a_silent_host_knew_is_over(rebuilt: TaskScheduler) -> None:
    """What a host cannot renew it ends by itself."""
    register(rebuilt, "h", [device("d")], leases=(running(),))
    rebuilt.silence(HostSilent(host_id="h", incarnation=1, reason="it no longer heartbeats"), START + 1)
    assert state(rebuilt) is DeviceState.OFFLINE


def test_a_release_of_a_lease_that_only_its_host_knew_frees_the_device(rebuilt: TaskScheduler) -> None:
    """A task that ended before the pool could ask it, gave it back all the same."""
    out = running()
    register(rebuilt, "h", [device("d")], leases=(out,), served={"d": 100})
    rebuilt.settle([settlement(SettleKind.RELEASE, out)], START + 1)
    assert state(rebuilt) is DeviceState.IDLE


def test_a_lease_that_is_over_is_not_believed(rebuilt: TaskScheduler) -> None:
    """Whoever tells late of a lease that its host has done with, or that was given back, keeps nobody waiting."""
    served, returned = running("t1", 100), running("t2", 200)
    register(rebuilt, "h", [device("d")], served={"d": 100})
    rebuilt.settle([settlement(SettleKind.RELEASE, returned)], START + 1)
    for told in (served, returned):
        (answer,) = rebuilt.admit([entry(told.task_id, known=True, lease=told)], START + 2)
        assert (answer.lease, answer.refused) == (None, None)
    assert (holders(rebuilt), queued(rebuilt), state(rebuilt)) == ({}, [], DeviceState.IDLE)


def test_of_two_leases_of_one_device_the_first_told_is_believed(rebuilt: TaskScheduler) -> None:
    """The device has one holder; the locks of its host see to the other."""
    rebuilt.admit([entry("t1", known=True, lease=running("t1", 100))], START)
    rebuilt.admit([entry("t2", known=True, lease=running("t2", 101))], START)
    assert holders(rebuilt) == {"t1": "d"}


def test_s1_42_what_a_host_does_not_know_of_stays_leased(scheduler: TaskScheduler) -> None:
    """A lease is on its way before a host has it: that the host works on nothing frees nothing."""
    register(scheduler, "h", [device("d")], START + 1)
    assert holders(scheduler) == {"t1": "d"}


def test_a_rebuilt_pool_keeps_what_it_knew_of_its_hosts() -> None:
    """Their keys, whether they are in service, and which of their registrations are used up."""
    before = pool(device("d"))
    before.order(HostOrder(host_id="h", kind="drain"), START)
    after = repair.rebuilt(before.state, START)
    assert (after.devices, after.held, after.queue) == ({}, {}, [])
    (host,) = after.hosts.values()
    known = before.records.hosts["h"]
    assert (host.public_key, host.serial, host.in_service) == (key_of("h").public, known.serial, False)

"""One task: which leases it takes, who gets its work, and what the end of an attempt means for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.rules import START, assigned, claim, dispatched, lease, task
from toolcrib.scheduling.errors import (
    AlreadyClaimed,
    ClaimRefused,
    LeaseExpired,
    LeaseSuperseded,
    NotOwner,
    TaskEnded,
)
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import Admission, Claim, ReportOutcome, SettleKind
from toolcrib.scheduling.task import Offer, Status, TaskRecord

DONE, FAILED, RETURNED = ReportOutcome.DONE, ReportOutcome.FAILED, ReportOutcome.RETURNED


def refused(record: TaskRecord, wanted: Claim, error: type[ClaimRefused], now: float = START + 1) -> None:
    """Check that a claim is refused for one reason, by the check and by the claim itself, and changes nothing."""
    before = (record.status, record.started_at, [replace(attempt) for attempt in record.attempts])
    for ask in (record.check_claim, record.claim):
        with pytest.raises(error):
            ask(wanted, now)
    assert before == (record.status, record.started_at, record.attempts)


# ---- leases


def test_a_new_task_is_queued() -> None:
    """Before anything else."""
    record = task()
    assert (record.status, record.attempt, record.attempts, record.ended) == (Status.QUEUED, None, [], False)
    assert (record.created_at, record.started_at, record.finished_at) == (START, None, None)


def test_the_pools_answer_sets_time_and_limit_and_may_bring_a_lease() -> None:
    """The time of submission is the pool's; a lease in the answer is taken as any other."""
    record = task()
    answer = Admission(task_id="t", submitted_at=START - 9, max_attempts=5)
    assert record.admitted(answer, START) is None
    assert (record.created_at, record.max_attempts, record.status) == (START - 9, 5, Status.QUEUED)
    assert record.admitted(replace(answer, lease=lease()), START) is Offer.TAKEN
    assert record.status is Status.ASSIGNED
    assert record.admitted(replace(answer, lease=lease()), START) is Offer.DUPLICATE
    assert record.admitted(replace(answer, lease=lease(2), submitted_at=0.0), START) is Offer.UNWANTED
    assert record.created_at == START - 9


@pytest.mark.parametrize(
    ("offered", "now"),
    [
        (lease(2), START),
        (lease(0), START),
        (lease(1, task_id="another"), START),
        (lease(1), START + 30),
    ],
    ids=["a later attempt", "an earlier one", "another task's", "too late to be claimed"],
)
def test_a_lease_that_does_not_fit_is_turned_down_and_the_task_waits_on(offered: Lease, now: float) -> None:
    """The pool is told that the device is free and that the task still wants one: it would be forgotten otherwise."""
    record = task()
    assert record.offer(offered, now) is Offer.UNWANTED
    assert record.status is Status.QUEUED
    told = record.turning_down(offered)
    assert (told.kind, told.lease, told.task_id) == (SettleKind.REQUEUE, offered, "t")
    assert told.entry is not None
    assert (told.entry.known, told.entry.attempts, told.entry.submitted_at) == (True, 0, START)


def test_a_lease_beside_an_open_one_is_returned() -> None:
    """And so is one for a task that has ended; one that it has or had is neither taken nor returned."""
    record = task()
    first = assigned(record)
    assert record.offer(lease(2), START) is Offer.UNWANTED
    assert record.turning_down(lease(2)).kind is SettleKind.RETURN
    assert record.offer(first, START) is Offer.DUPLICATE
    record.cancel(START)
    assert record.offer(first, START) is Offer.DUPLICATE
    assert record.offer(lease(2, fencing=999), START) is Offer.UNWANTED
    assert record.turning_down(lease(2)).kind is SettleKind.RETURN


# ---- claims


def test_s1_47_a_claim_makes_the_task_dispatched() -> None:
    """With the work as the answer; the time is noted."""
    record = task(inputs={"a": 1})
    offered = assigned(record)
    work = record.claim(claim(offered), START + 1)
    assert (work.task_id, work.attempt, work.goal, work.workflow, work.inputs) == ("t", 1, "echo", None, {"a": 1})
    assert (record.status, record.started_at, record.attempts[0].claimed_at) == (
        Status.DISPATCHED,
        START + 1,
        START + 1,
    )


def test_s17_the_same_claim_gets_the_same_answer_again() -> None:
    """A lost answer costs nothing, even after the time to claim; the first time counts."""
    record = task()
    offered = assigned(record)
    answers = [record.claim(claim(offered), START + seconds) for seconds in (1, 2, 99)]
    assert answers[0] == answers[1] == answers[2]
    assert record.started_at == START + 1


def test_s1_44_another_host_does_not_get_the_work() -> None:
    """Neither before nor after the owner has claimed it."""
    record = task()
    offered = assigned(record)
    refused(record, claim(offered, host_id="other"), NotOwner)
    record.claim(claim(offered), START + 1)
    refused(record, claim(offered, host_id="other"), NotOwner)


def test_s1_49_of_several_claims_one_succeeds() -> None:
    """The others are told that it was claimed."""
    record = task()
    offered = assigned(record)
    record.claim(claim(offered, "c1"), START + 1)
    refused(record, claim(offered, "c2"), AlreadyClaimed)


@pytest.mark.parametrize(("seconds", "late"), [(45, False), (45.001, True)])
def test_s1_45_a_lease_is_claimed_in_time_or_not_at_all(seconds: float, late: bool) -> None:
    """The claim window and one ttl more, after which the task has given it up."""
    record = task()
    offered = assigned(record)
    if late:
        refused(record, claim(offered), LeaseExpired, START + seconds)
    else:
        record.claim(claim(offered), START + seconds)


def test_s1_46_only_an_open_lease_can_be_claimed() -> None:
    """Not before there is one, not when it has expired, not when a newer one is out, not after the end."""
    record = task()
    refused(record, claim(lease()), LeaseSuperseded)
    first = dispatched(record)
    record.expire("the host stopped renewing it", START + 2)
    refused(record, claim(first), LeaseExpired)
    assigned(record)
    refused(record, claim(first), LeaseSuperseded)
    record.cancel(START)
    refused(record, claim(first), TaskEnded)

"""What a task tells its pool of the device whose lease has ended."""

from __future__ import annotations

import pytest

from support.rules import START, assigned, dispatched, report, task
from toolcrib.scheduling.messages import LeaseEnd, ReportOutcome, SettleKind


@pytest.mark.parametrize("outcome", [ReportOutcome.DONE, ReportOutcome.FAILED])
def test_work_that_ended_speaks_for_its_device(outcome: ReportOutcome) -> None:
    """Also if it failed: that is the work's affair."""
    record = task()
    lease = dispatched(record)
    record.report(report(lease, outcome), START)
    assert record.settlement().end == LeaseEnd(lease_id=lease.id, served=True)


def test_s21_a_lease_that_lapsed_speaks_against_it() -> None:
    """Claimed or not, with how it lapsed; the task is requeued and names the culprit, which stays on its record."""
    for hold in (assigned, dispatched):
        record = task()
        lease = hold(record)
        record.expire("the host stopped renewing it", START)
        told = record.settlement()
        assert told.end == LeaseEnd(lease_id=lease.id, served=False, reason="the host stopped renewing it")
        assert told.entry is not None
        assert told.entry.avoids == ("h/d",)
        assert record.attempts[0].lease.device_key == "h/d"


def test_a_lease_that_was_given_back_says_nothing() -> None:
    """Whether it was claimed or not: the host had its reasons."""
    for hold in (assigned, dispatched):
        record = task()
        record.report(report(hold(record), ReportOutcome.RETURNED), START)
        assert record.settlement().end is None


def test_cancelled_work_speaks_for_its_device_if_its_host_ended_it() -> None:
    """A host that does not confirm the end in time may still be at it: that is a failure."""
    record = task()
    lease = dispatched(record)
    record.cancel(START)
    assert record.withdrawal(confirmed=True).end == LeaseEnd(lease_id=lease.id, served=True)
    unconfirmed = record.withdrawal(confirmed=False)
    assert (unconfirmed.kind, unconfirmed.lease) == (SettleKind.WITHDRAW, None)
    assert unconfirmed.end == LeaseEnd(
        lease_id=lease.id, served=False, reason="its host did not confirm that it has ended"
    )


def test_a_task_that_was_cancelled_before_its_lease_was_claimed_says_nothing() -> None:
    """Nothing was tried."""
    record = task()
    assigned(record)
    record.cancel(START)
    assert record.withdrawal(confirmed=True).end is None


def test_a_task_that_has_had_no_lease_or_waits_for_another_says_nothing_new() -> None:
    """At most what it has said before, of the same lease."""
    record = task()
    assert record.withdrawal().end is None
    lease = dispatched(record)
    assert record.withdrawal().end is None
    record.expire("it lapsed", START)
    record.cancel(START)
    assert record.withdrawal().end == LeaseEnd(lease_id=lease.id, served=False, reason="it lapsed")

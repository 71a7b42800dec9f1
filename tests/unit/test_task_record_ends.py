"""What the end of an attempt means for its task, and that an end is an end."""

from __future__ import annotations

import pytest

from support.rules import START, assigned, claim, dispatched, key_of, report, task
from toolcrib.scheduling.errors import ErrorBody
from toolcrib.scheduling.messages import Progress, Report, ReportOutcome, SettleKind
from toolcrib.scheduling.task import FREE_RETURNS_IN_A_ROW, Status

DONE, FAILED, RETURNED = ReportOutcome.DONE, ReportOutcome.FAILED, ReportOutcome.RETURNED


def test_a_result_ends_the_task() -> None:
    """Done, with result and progress; the device is released."""
    record = task()
    record.report(report(dispatched(record), DONE, {"exit_code": 0}), START + 9)
    assert (record.status, record.result, record.error, record.progress) == (Status.DONE, {"exit_code": 0}, None, 1.0)
    assert (record.finished_at, record.attempts[0].ended_at) == (START + 9, START + 9)
    assert record.settlement().kind is SettleKind.RELEASE


def test_k10_a_failure_that_the_runner_reports_is_final() -> None:
    """It is not tried again; error and result are kept."""
    record = task()
    record.report(report(dispatched(record), FAILED, {"exit_code": 1}), START + 9)
    assert (record.status, record.result) == (Status.FAILED, {"exit_code": 1})
    assert record.error == ErrorBody(code="task_failed", message="it was failed")
    assert (record.attempts[0].outcome, record.attempts[0].reason) == ("failed", "it was failed")


def test_a_failure_without_words_has_an_error_all_the_same() -> None:
    """A task never fails without a reason."""
    record = task()
    wordless = Report(lease_id=dispatched(record).id, outcome=FAILED, claim_id="c1")
    record.report(key_of("h").signed_report(wordless), START)
    assert record.error == ErrorBody(code="task_failed", message="the work failed")


def test_s1_54_an_expired_attempt_is_kept_and_the_task_waits_again() -> None:
    """With number, device, times and reason."""
    record = task()
    held = dispatched(record)
    record.expire("the host stopped renewing it", START + 9)
    (attempt,) = record.attempts
    assert (attempt.lease, attempt.outcome, attempt.reason) == (held, "expired", "the host stopped renewing it")
    assert (attempt.claimed_at, attempt.ended_at) == (START + 1, START + 9)
    assert (record.status, record.started_at, record.queued_since) == (Status.QUEUED, None, START + 9)
    told = record.settlement()
    assert (told.kind, told.lease) == (SettleKind.REQUEUE, held)
    assert told.entry is not None
    assert (told.entry.known, told.entry.attempts, told.entry.submitted_at) == (True, 1, START)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_s1_55_at_the_limit_of_attempts_the_task_fails(limit: int) -> None:
    """With the reason for which the last one ended."""
    record = task(max_attempts=limit)
    for _ in range(limit):
        assert record.status is Status.QUEUED
        assigned(record)
        record.expire("it was not claimed in time", START)
    assert record.status is Status.FAILED
    assert record.error is not None
    assert record.error.code == "lease_expired"
    assert record.error.message == f"attempt {limit} of {limit} on h/d expired: it was not claimed in time"
    assert record.error.hint
    assert record.settlement().kind is SettleKind.RELEASE


def test_k15_a_result_without_a_claim_is_not_believed() -> None:
    """The attempt ends as refused; what it brought is dropped."""
    record = task()
    record.report(report(assigned(record), DONE, {"stolen": True}), START)
    assert (record.status, record.result) == (Status.QUEUED, None)
    assert (record.attempts[0].outcome, record.attempts[0].lingers) == ("refused", False)


def test_s1_64_a_result_of_another_lease_is_not_believed() -> None:
    """Not even while one is claimed; whose host may then be still at work."""
    record = task()
    first = dispatched(record)
    record.expire("the host stopped renewing it", START)
    dispatched(record)
    record.report(report(first, DONE, {"old": True}), START)
    assert (record.status, record.result) == (Status.QUEUED, None)
    assert [attempt.outcome for attempt in record.attempts] == ["expired", "refused"]
    assert [attempt.lingers for attempt in record.attempts] == [False, True]


def test_a_lease_that_is_given_back_is_not_counted_up_to_five_in_a_row() -> None:
    """A host that drains costs no attempt; but a task does not go round for ever."""
    record = task(max_attempts=1)
    for _ in range(FREE_RETURNS_IN_A_ROW):
        record.report(report(assigned(record), RETURNED), START)
        assert (record.status, record.counted_attempts) == (Status.QUEUED, 0)
    record.report(report(dispatched(record), RETURNED), START)
    assert (record.status, record.counted_attempts) == (Status.FAILED, 1)
    assert [attempt.lease.attempt for attempt in record.attempts] == [1, 2, 3, 4, 5, 6]
    assert record.error is not None
    assert record.error.message == "attempt 1 of 1 on h/d returned: it was returned"


def test_an_attempt_that_counts_begins_a_new_row() -> None:
    """Five returns, an expiry, and five more are one attempt."""
    record = task(max_attempts=2)
    for outcome in [*[RETURNED] * 5, None, *[RETURNED] * 5]:
        offered = assigned(record)
        if outcome is None:
            record.expire("it was not claimed in time", START)
        else:
            record.report(report(offered, outcome), START)
    assert (record.status, record.counted_attempts) == (Status.QUEUED, 1)


@pytest.mark.parametrize("step", [None, assigned, dispatched])
def test_a_task_is_cancelled_from_every_state_that_is_no_end(step: object) -> None:
    """Its attempt ends with it, and it does not queue again."""
    record = task()
    if callable(step):
        step(record)
    record.cancel(START + 9)
    assert (record.status, record.finished_at, record.error) == (Status.CANCELLED, START + 9, None)
    assert all(attempt.outcome == "cancelled" for attempt in record.attempts)


@pytest.mark.parametrize("end", ["done", "failed", "cancelled"])
def test_s2_08_an_end_is_an_end(end: str) -> None:
    """Reports, expiries, cancels and failures that come later change nothing."""
    record = task()
    held = dispatched(record)
    if end == "cancelled":
        record.cancel(START)
    else:
        record.report(report(held, ReportOutcome(end), {"first": True}), START)
    before = (record.status, record.result, record.error, record.finished_at, record.attempts[0].outcome)
    for outcome in ReportOutcome:
        record.report(report(held, outcome, {"second": True}), START + 1)
    record.expire("late", START + 1)
    record.cancel(START + 1)
    record.fail(ErrorBody(code="queue_full", message="late"), START + 1)
    record.progressed(Progress(lease_id=held.id, value=0.1))
    assert not record.give_up_waiting(START + 10**9)
    assert before == (record.status, record.result, record.error, record.finished_at, record.attempts[0].outcome)
    assert record.status == end


def test_k33_a_task_may_give_up_waiting() -> None:
    """Not before its time, not while it runs; after an attempt the time begins anew."""
    record = task(queue_timeout=60)
    assert record.waits_until == START + 60
    assert not record.give_up_waiting(START + 59)
    assigned(record)
    assert not record.give_up_waiting(START + 61)
    record.expire("it was not claimed in time", START + 50)
    assert not record.give_up_waiting(START + 109)
    assert record.give_up_waiting(START + 110)
    assert record.status is Status.FAILED
    assert record.error is not None
    assert (record.error.code, record.error.message) == ("queue_timeout", "no device became free within 60 s")
    assert not record.give_up_waiting(START + 111)


def test_without_a_queue_timeout_a_task_waits_for_ever() -> None:
    """That nothing fits is a reason to wait, not to fail."""
    record = task()
    assert record.waits_until is None
    assert not record.give_up_waiting(START + 10**9)


def test_k19_progress_counts_from_the_current_lease_while_it_runs() -> None:
    """Not before the claim, not from an older lease, not out of range; it begins anew with the next attempt."""
    record = task()
    first = assigned(record)
    record.progressed(Progress(lease_id=first.id, value=0.5))
    assert record.progress is None
    record.claim(claim(first), START)
    for value, expected in ((0.5, 0.5), (0.25, 0.25), (1.5, 0.25), (-1.0, 0.25), (float("nan"), 0.25), (0.0, 0.0)):
        record.progressed(Progress(lease_id=first.id, value=value, message=f"{value}"))
        assert record.progress == expected
    assert record.message == "0.0"
    record.expire("the host stopped renewing it", START)
    dispatched(record)
    record.progressed(Progress(lease_id=first.id, value=0.9, message="late"))
    assert [record.progress, record.message] == [None, None]

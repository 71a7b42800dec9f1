"""Whatever a task hears, in whatever order: it goes through its life as the table of its life says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from support.rules import START, claim, key_of, lease, report, task
from toolcrib.scheduling.errors import ClaimRefused, ErrorBody
from toolcrib.scheduling.lease import Lease, Outcome
from toolcrib.scheduling.messages import Admission, HostRestarted, ReportOutcome, SettleKind
from toolcrib.scheduling.signatures import report_digest
from toolcrib.scheduling.task import FREE_RETURNS_IN_A_ROW, Offer, Status
from toolcrib.scheduling.task_view import details, task_view

FEW = st.integers(0, 3)
MAY_WAIT = 400

QUEUED, ASSIGNED, DISPATCHED = Status.QUEUED, Status.ASSIGNED, Status.DISPATCHED
DONE, FAILED, CANCELLED = Status.DONE, Status.FAILED, Status.CANCELLED

MOVES: dict[str, set[tuple[Status, Status]]] = {
    "offer": {(QUEUED, ASSIGNED)},
    "claim": {(ASSIGNED, DISPATCHED)},
    "done": {(DISPATCHED, DONE)},
    "failed": {(DISPATCHED, FAILED)},
    "expired": {(here, there) for here in (ASSIGNED, DISPATCHED) for there in (QUEUED, FAILED)},
    "cancel": {(here, CANCELLED) for here in (QUEUED, ASSIGNED, DISPATCHED)},
    "wait": {(QUEUED, FAILED)},
    "nothing": set(),
}
"""The table of a task's life: the moves that each event may make. Nothing leads out of the last three states."""


ENDS = {
    ReportOutcome.DONE: Outcome.DONE,
    ReportOutcome.FAILED: Outcome.FAILED,
    ReportOutcome.RETURNED: Outcome.RETURNED,
    ReportOutcome.ABANDONED: Outcome.EXPIRED,
    ReportOutcome.STOPPED: Outcome.EXPIRED,
}
"""What a host's own word makes of an attempt."""


class TaskMachine(RuleBasedStateMachine):
    """One task, and everything that pool, hosts and people may say to it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self._begin()

    def _begin(self) -> None:
        self.record = task(max_attempts=3, queue_timeout=MAY_WAIT)
        self.record.queued_since = self.now
        self.status = QUEUED
        self.event = "nothing"
        self.leases: list[Lease] = []
        self.turned_down: list[Lease] = []
        self.outcomes: list[Outcome | None] = []
        self.last_view: str | None = None
        self.fencing = 0

    # ---- what it hears

    @rule(seconds=st.sampled_from([0.0, 1.0, 20.0, 29.0, 31.0]))
    def time_passes(self, seconds: float) -> None:
        self.event = "nothing"
        self.now += seconds

    @precondition(lambda self: self.record.status is QUEUED)
    @rule()
    def get_a_lease(self) -> None:
        self._offer(self._new_lease(), Offer.TAKEN)

    @rule(ahead=st.integers(0, 2), foreign=st.booleans(), late=st.booleans())
    def get_a_lease_that_may_not_fit(self, ahead: int, foreign: bool, late: bool) -> None:
        offered = self._new_lease(ahead, task_id="another" if foreign else "t", claim_by=self.now + 30 * (not late))
        fits = self.status is QUEUED and ahead == 1 and not foreign and not late
        self._offer(offered, Offer.TAKEN if fits else Offer.UNWANTED)

    @precondition(lambda self: self.leases)
    @rule(n=FEW, admitted=st.booleans())
    def get_a_lease_again(self, n: int, admitted: bool) -> None:
        again = self._past(n)
        answer = Offer.UNWANTED if again in self.turned_down else Offer.DUPLICATE
        if admitted:
            self.event = "nothing"
            admission = Admission(task_id="t", submitted_at=self.record.created_at, max_attempts=3, lease=again)
            assert self.record.admitted(admission, self.now) is answer
        else:
            self._offer(again, answer)

    @precondition(lambda self: self.record.attempt is not None)
    @rule()
    def claim(self) -> None:
        self._claim(self.leases_of_attempts[-1], "c1", "h", self.record.attempts[-1].least_incarnation)

    @precondition(lambda self: self.leases)
    @rule(n=FEW, claim_id=st.sampled_from(["c1", "c2"]), host_id=st.sampled_from(["h", "other"]), age=FEW)
    def claim_perhaps_wrongly(self, n: int, claim_id: str, host_id: str, age: int) -> None:
        self._claim(self._past(n), claim_id, host_id, age)

    @precondition(lambda self: self.record.attempt is not None)
    @rule(outcome=st.sampled_from([ReportOutcome.RETURNED, *ReportOutcome]))
    def report(self, outcome: ReportOutcome) -> None:
        self._report(self.leases_of_attempts[-1], outcome, self.record.attempts[-1].claim_id or "c1")

    @precondition(lambda self: self.leases and self.record.status is not QUEUED)
    @rule(n=FEW, outcome=st.sampled_from(ReportOutcome), claim_id=st.sampled_from(["c1", "c2"]), forged=st.booleans())
    def report_perhaps_wrongly(self, n: int, outcome: ReportOutcome, claim_id: str, forged: bool) -> None:
        self._report(self._past(n), outcome, claim_id, forged=forged)

    @precondition(lambda self: self.record.attempt is not None)
    @rule(incarnation=st.integers(1, 3), machine=st.sampled_from(["m", "m2"]), host_id=st.sampled_from(["h", "h2"]))
    def hear_of_a_new_worker(self, incarnation: int, machine: str, host_id: str) -> None:
        attempt = self.record.attempts[-1]
        newer = host_id == "h" and incarnation > attempt.least_incarnation
        loses = newer and attempt.claimed_at is not None
        self.event = "expired" if loses else "nothing"
        self.record.host_restarted(HostRestarted(host_id=host_id, incarnation=incarnation, machine=machine), self.now)
        assert attempt.open is not loses
        assert attempt.lingers is (loses and machine != "m")
        assert (attempt.least_incarnation == incarnation) or not newer

    @precondition(lambda self: self.record.attempts)
    @rule()
    def hold_the_lease_too_long(self) -> None:
        self.event = "expired"
        self.record.expire("the host stopped renewing it", self.now)

    @rule()
    def cancel(self) -> None:
        self.event = "cancel"
        self.record.cancel(self.now)

    @rule()
    def wait_too_long(self) -> None:
        self.event = "wait"
        due = self.status is QUEUED and self.now >= self.record.queued_since + MAY_WAIT
        assert self.record.give_up_waiting(self.now) is due

    @precondition(lambda self: self.record.status is QUEUED)
    @rule(n=st.integers(1, 7))
    def meet_draining_hosts(self, n: int) -> None:
        for _ in range(n):
            if self.record.status is QUEUED:
                self.get_a_lease()
                self._report(self.leases_of_attempts[-1], ReportOutcome.RETURNED, "c1")
        self.event = "wait" if self.record.ended else "nothing"

    @precondition(lambda self: self.record.ended)
    @rule()
    def fail_after_the_end(self) -> None:
        self.event = "nothing"
        self.record.fail(ErrorBody(code="queue_full", message="the queue is full"), self.now)

    @precondition(lambda self: self.record.ended)
    @rule()
    def begin_another_life(self) -> None:
        self._begin()

    # ---- what always holds

    @invariant()
    def it_moves_as_the_table_says(self) -> None:
        """A state changes only by an event that may change it; from an end nothing leads away."""
        move = (self.status, self.record.status)
        assert move[0] is move[1] or move in MOVES[self.event], f"{self.event}: {move}"
        self.status = self.record.status

    @invariant()
    def what_has_ended_stays_as_it_is(self) -> None:
        """Not a letter of what is shown of a task changes after its end."""
        view = task_view(self.record).model_dump_json() + details(self.record)
        assert self.last_view in (None, view)
        self.last_view = view if self.record.ended else None

    @invariant()
    def an_attempt_ends_once(self) -> None:
        """An attempt gets one outcome, with its time, and keeps it; only the last one may be open."""
        outcomes = [attempt.outcome for attempt in self.record.attempts]
        before = self.outcomes + [None] * (len(outcomes) - len(self.outcomes))
        assert all(old in (None, new) for old, new in zip(before, outcomes, strict=True))
        assert None not in outcomes[:-1]
        assert all((attempt.outcome is None) == (attempt.ended_at is None) for attempt in self.record.attempts)
        assert (outcomes[-1:] == [None]) == (self.record.status in (ASSIGNED, DISPATCHED))
        assert [attempt.lease.attempt for attempt in self.record.attempts] == list(range(1, len(outcomes) + 1))
        self.outcomes = list(outcomes)

    @invariant()
    def the_limit_of_attempts_holds(self) -> None:
        """Every attempt counts but up to five in a row that were given back; the count never passes the limit."""
        counted = in_a_row = 0
        for attempt in self.record.attempts:
            in_a_row = in_a_row + 1 if attempt.outcome is Outcome.RETURNED else 0
            counted += in_a_row == 0 or in_a_row > FREE_RETURNS_IN_A_ROW
        assert counted == self.record.counted_attempts <= 3
        if self.record.status is QUEUED:
            assert counted < 3

    @invariant()
    def the_pool_is_told_what_is_true(self) -> None:
        """After an attempt the task gives its device back, and queues again just if it waits again."""
        if self.record.attempts and self.record.attempt is None:
            told = self.record.settlement()
            assert told.kind is (SettleKind.REQUEUE if self.record.status is QUEUED else SettleKind.RELEASE)
            assert told.lease == self.record.attempts[-1].lease
            assert (told.entry is not None) == (self.record.status is QUEUED)
            assert told.entry is None or (told.entry.known and told.entry.attempts == len(self.record.attempts))

    # ---- how it is done

    @property
    def leases_of_attempts(self) -> list[Lease]:
        """The leases that it took."""
        return [attempt.lease for attempt in self.record.attempts]

    def _past(self, n: int) -> Lease:
        return self.leases[-1 - n % len(self.leases)]

    def _new_lease(self, ahead: int = 1, **fields: Any) -> Lease:
        self.fencing += 1
        given = {"fencing": self.fencing, "assigned_at": self.now, "claim_by": self.now + 30, **fields}
        return lease(len(self.record.attempts) + ahead, **given)

    def _offer(self, offered: Lease, expected: Offer) -> None:
        self.event = "offer"
        assert self.record.offer(offered, self.now) is expected
        if offered not in self.leases and offered.task_id == "t":
            self.leases.append(offered)
        if expected is Offer.UNWANTED:
            self.turned_down.append(offered)
            told = self.record.turning_down(offered)
            assert told.kind is (SettleKind.REQUEUE if self.record.status is QUEUED else SettleKind.RETURN)
            assert told.lease == offered

    def _claim(self, wanted: Lease, claim_id: str, host_id: str, incarnation: int) -> None:
        attempt = self.record.attempt
        mine = attempt is not None and attempt.lease == wanted and host_id == wanted.host_id
        mine = mine and attempt is not None and incarnation >= attempt.least_incarnation
        first = attempt is not None and attempt.claim_id is None and self.now <= wanted.claim_by + wanted.ttl
        again = attempt is not None and attempt.claim_id == claim_id
        request = claim(wanted, claim_id, host_id, incarnation)
        self.event = "claim" if mine and first else "nothing"
        if mine and (first or again):
            self.record.check_claim(request, self.now)
            assert self.record.claim(request, self.now).attempt == wanted.attempt
            assert self.record.claim(request, self.now).goal == "echo"
            return
        with pytest.raises(ClaimRefused):
            self.record.check_claim(request, self.now)
        with pytest.raises(ClaimRefused):
            self.record.claim(request, self.now)

    def _report(self, told: Lease, outcome: ReportOutcome, claim_id: str, *, forged: bool = False) -> None:
        attempt = self.record.attempt
        said = report(told, outcome, {"by": told.fencing}, claim_id)
        if forged:
            said = key_of("other").signed_report(said)
        digest = report_digest(said)
        own = attempt is not None and attempt.lease == told and not forged
        final = own and outcome in (ReportOutcome.DONE, ReportOutcome.FAILED)
        claimed = attempt is not None and attempt.claim_id is not None
        another = attempt is not None and attempt.claim_id not in (claim_id, None)
        believed = own and (claimed or not final) and (not another or outcome is ReportOutcome.RETURNED)
        self.event = "nothing" if attempt is None else str(outcome) if believed and final else "expired"
        self.record.report(said, self.now)
        if attempt is not None:
            assert attempt.outcome is (ENDS[outcome] if believed else Outcome.REFUSED)
            assert attempt.lingers is (claimed and (another or not believed))
            assert self.record.result == ({"by": told.fencing} if believed and final else None)
            before = any(one.lease == told != attempt.lease for one in self.record.attempts if one.report == digest)
            assert (self.record.on_record(said) is None) == (believed or before)


TestTask = TaskMachine.TestCase


def test_a_lease_that_was_turned_down_is_not_taken_later() -> None:
    """It was given back, and may be somebody else's by now, even if it would fit today."""
    record = task()
    second = lease(2, fencing=7)
    assert record.offer(second, START) is Offer.UNWANTED
    first = lease(1, fencing=8)
    assert record.offer(first, START) is Offer.TAKEN
    record.expire("it was not claimed", START)
    assert record.offer(second, START) is Offer.UNWANTED
    assert record.offer(replace(second, fencing=9), START) is Offer.TAKEN

"""The life of one task: which leases it takes, who may claim them, and what their end means for it.

queued -> assigned -> dispatched -> done | failed | cancelled; back to queued only when a lease expires or is returned.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from toolcrib.scheduling.claims import check_claim, is_of_another_claim, report_fault, standing
from toolcrib.scheduling.errors import (
    ErrorBody,
    LeaseSuperseded,
    TaskEnded,
)
from toolcrib.scheduling.lease import Attempt, Lease, Outcome
from toolcrib.scheduling.messages import (
    Admission,
    Assignment,
    Claim,
    HostRestarted,
    LeaseEnd,
    Progress,
    QueueEntry,
    Report,
    ReportOutcome,
    SettleKind,
    Settlement,
)
from toolcrib.scheduling.request import TaskRequest
from toolcrib.scheduling.retry_policy import RetryPolicy
from toolcrib.scheduling.signatures import report_digest

FREE_RETURNS_IN_A_ROW: Final = 5
"""A lease given back unused is not counted as an attempt, but not for ever."""


class Status(StrEnum):
    """Where a task is in its life."""

    QUEUED = "queued"
    ASSIGNED = "assigned"
    DISPATCHED = "dispatched"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


MOVES: Final[dict[Status, tuple[Status, ...]]] = {
    Status.QUEUED: (Status.ASSIGNED, Status.FAILED, Status.CANCELLED),
    Status.ASSIGNED: (Status.DISPATCHED, Status.QUEUED, Status.FAILED, Status.CANCELLED),
    Status.DISPATCHED: (Status.DONE, Status.QUEUED, Status.FAILED, Status.CANCELLED),
    Status.DONE: (),
    Status.FAILED: (),
    Status.CANCELLED: (),
}
"""Where a task may go from each status, and nowhere else: see docs/decisions/0017-moves.md."""

ENDED: Final = tuple(status for status, further in MOVES.items() if not further)


def moved(before: Status, after: Status) -> Status:
    """Return the status `after`.

    Raises:
        RuntimeError: there is no such move. No message may lead here: it is a fault of the rules.
    """
    if after not in MOVES[before]:
        raise RuntimeError(f"a task does not go from {before} to {after}")
    return after


_LAPSED: Final = (Outcome.EXPIRED, Outcome.REFUSED)


class Offer(StrEnum):
    """What becomes of a lease that the pool offers."""

    TAKEN = "taken"
    DUPLICATE = "duplicate"
    """It is one the task has or had; giving it back would free a device in use."""
    UNWANTED = "unwanted"
    """It has to be returned."""


class TaskRecord:
    """One task. Times are unix seconds and come in as `now`."""

    def __init__(self, task_id: str, request: TaskRequest, now: float) -> None:
        self.task_id = task_id
        self.request = request
        self.status = Status.QUEUED
        self.created_at = now
        self.queued_since = now
        self.started_at: float | None = None
        self.finished_at: float | None = None
        self.attempts: list[Attempt] = []
        self.max_attempts = request.max_attempts or 1
        self.progress: float | None = None
        self.message: str | None = None
        self.result: Any = None
        self.error: ErrorBody | None = None
        self._newest_offer = 0
        self._begun_anew: float | None = None

    # ---- what holds

    @property
    def ended(self) -> bool:
        """Whether the task is over."""
        return self.status in ENDED

    @property
    def attempt(self) -> Attempt | None:
        """The attempt that holds a device now."""
        return self.attempts[-1] if self.attempts and self.attempts[-1].open else None

    @property
    def counted_attempts(self) -> int:
        """Attempts that count against the limit."""
        counted = returns = 0
        for attempt in self.attempts:
            returns = 0 if attempt.counted else returns + 1
            counted += attempt.counted or returns > FREE_RETURNS_IN_A_ROW
        return counted

    @property
    def waits_until(self) -> float | None:
        """When a queued task gives up waiting."""
        limit = self.request.queue_timeout
        return None if limit is None else self.queued_since + limit

    def entry(self, *, known: bool) -> QueueEntry:
        """Return how the task asks for a place in the queue, or tells of the lease that it holds.

        A `known` one is not refused for depth.
        """
        return QueueEntry(
            task_id=self.task_id,
            constraints=self.request.constraints,
            priority=self.request.priority,
            submitted_at=self.created_at,
            attempts=len(self.attempts),
            max_attempts=self.request.max_attempts,
            known=known,
            avoids=tuple(dict.fromkeys(a.lease.device_key for a in self.attempts if a.outcome in _LAPSED)),
            lease=self.attempt.lease if self.attempt else None,
        )

    # ---- what happens

    def admitted(self, admission: Admission, now: float) -> Offer | None:
        """Take the pool's answer: the time of submission, the limit of attempts and perhaps a lease.

        Returns what becomes of that lease, as `offer` does; None without one.
        """
        if not self.attempts:
            self.created_at = self.queued_since = admission.submitted_at
        self.max_attempts = admission.max_attempts
        return self.offer(admission.lease, now) if admission.lease is not None else None

    def offer(self, lease: Lease, now: float) -> Offer:
        """Take a lease if the task waits for just this one; one that was turned down once is never taken later."""
        if any(attempt.lease.id == lease.id for attempt in self.attempts):
            return Offer.DUPLICATE
        if self._begun_anew is not None and lease.assigned_at <= self._begun_anew:
            return Offer.DUPLICATE  # of a lease from before the reset, of which only the pool knows
        expected = lease.task_id == self.task_id and lease.attempt == len(self.attempts) + 1
        newer, self._newest_offer = lease.fencing > self._newest_offer, max(lease.fencing, self._newest_offer)
        if self.status is not Status.QUEUED or not expected or not newer or lease.claim_by <= now:
            return Offer.UNWANTED
        self.attempts.append(Attempt(lease=lease))
        self.status = moved(self.status, Status.ASSIGNED)
        return Offer.TAKEN

    def check_claim(self, claim: Claim, now: float) -> None:
        """Let a claim pass if its host may have the work now.

        Raises:
            TaskEnded: the task is over.
            LeaseSuperseded: the lease is not the task's newest, or not known.
            ClaimRefused: as `claims.check_claim`.
        """
        if self.ended:
            raise TaskEnded(f"task {self.task_id} has ended: {self.status}")
        if not self.attempts or self.attempts[-1].lease.id != claim.lease_id:
            raise LeaseSuperseded(f"lease {claim.lease_id} is not the newest of task {self.task_id}")
        check_claim(self.attempts[-1], claim, now)

    def claim(self, claim: Claim, now: float) -> Assignment:
        """Hand the work to the lease's host. The same claim gets the same answer again.

        Raises:
            ClaimRefused: as `check_claim`.
        """
        self.check_claim(claim, now)
        attempt = self.attempts[-1]
        if attempt.claim_id is None:
            attempt.claim_id, attempt.claimed_at, attempt.machine = claim.claim_id, now, claim.machine
            attempt.least_incarnation = claim.incarnation  # the news of this worker's start may come later
            self.status, self.started_at = moved(self.status, Status.DISPATCHED), now
        return Assignment(
            task_id=self.task_id,
            attempt=attempt.lease.attempt,
            goal=self.request.goal,
            workflow=self.request.workflow,
            work=self.request.work,
            inputs=self.request.inputs,
        )

    def progressed(self, report: Progress) -> None:
        """Take note of how far the work is; a report from a lease that does not run, or is malformed, is ignored."""
        attempt = self.attempt
        if attempt is None or attempt.claimed_at is None or attempt.lease.id != report.lease_id:
            return
        if 0 <= report.value <= 1:
            self.progress, self.message = report.value, report.message

    def report(self, report: Report, now: float) -> None:
        """End the open attempt as its host says; what is not the host's word ends it as refused.

        Without an open attempt nothing happens: what is on record stands.
        """
        attempt = self.attempt
        if attempt is None:
            return
        if (fault := report_fault(attempt, report)) is not None:
            self.refuse(fault, now)
            return
        attempt.report, attempt.dirty = report_digest(report), report.dirty
        attempt.lingers = is_of_another_claim(attempt, report)
        reason = report.error.message if report.error else None
        if report.outcome is ReportOutcome.DONE:
            attempt.end(Outcome.DONE, now)
            self.result, self.progress = report.result, 1.0
            self._end(Status.DONE, now)
        elif report.outcome is ReportOutcome.FAILED:
            attempt.end(Outcome.FAILED, now, reason)
            self.result = report.result
            self.fail(report.error or ErrorBody(code="task_failed", message="the work failed"), now)
        else:
            attempt.end(Outcome.RETURNED if report.outcome is ReportOutcome.RETURNED else Outcome.EXPIRED, now, reason)
            self._again_or_fail(now)

    def refuse(self, reason: str, now: float) -> None:
        """End the open attempt, if there is one, because what came as its report is not its host's word."""
        if self.attempt is None:
            return
        self.attempt.end(Outcome.REFUSED, now, reason)
        self.attempts[-1].lingers = self.attempts[-1].claimed_at is not None
        self._again_or_fail(now)

    def on_record(self, report: Report) -> ErrorBody | None:
        """Return why a host's report is not on record; None if it is, or if its lease has not ended yet."""
        return standing(self.attempts, report)

    def host_restarted(self, news: HostRestarted, now: float) -> None:
        """Let no older worker of the host claim the lease; one that has claimed it has lost it."""
        attempt = self.attempt
        if attempt is None or attempt.lease.host_id != news.host_id or news.incarnation <= attempt.least_incarnation:
            return
        attempt.least_incarnation = news.incarnation
        if attempt.claimed_at is not None:
            away = attempt.machine != news.machine
            what = "another machine took its host's place" if away else "its host's worker was started anew"
            self.expire(what, now, lingers=away)

    def expire(self, reason: str, now: float, *, lingers: bool = False) -> None:
        """End the open attempt, if there is one, because its lease was not claimed, or not renewed.

        It `lingers` if its host may still be at work all the same.
        """
        if self.attempt is None:
            return
        self.attempt.lingers = lingers
        self.attempt.end(Outcome.EXPIRED, now, reason)
        self._again_or_fail(now)

    def cancel(self, now: float) -> None:
        """End the task because somebody asked for it; one that has ended stays as it is."""
        if self.ended:
            return
        if self.attempt is not None:
            self.attempt.end(Outcome.CANCELLED, now)
        self._end(Status.CANCELLED, now)

    def fail(self, error: ErrorBody, now: float) -> None:
        """End the task as failed; one that has ended stays as it is."""
        if self.ended:
            return
        self.error, self.message = error, error.message
        self._end(Status.FAILED, now)

    def distrust(self, reset_at: float) -> None:
        """Take no lease that was assigned up to `reset_at`, when the task's workflow was reset: others may have it."""
        self._begun_anew = reset_at

    def begin_anew(self, now: float) -> None:
        """Go on after a reset as far as is on record; one that has ended stays as it is.

        An attempt that was under way is over, and not counted.
        """
        if self.ended:
            return
        if self.attempt is not None:
            self.attempt.end(Outcome.RETURNED, now, "the task was reset")
        if self.status is not Status.QUEUED:
            self.status = moved(self.status, Status.QUEUED)
        self.queued_since, self.started_at = now, None
        self.progress = self.message = None

    def give_up_waiting(self, now: float) -> bool:
        """Fail a queued task whose `queue_timeout` has passed, and return whether it has."""
        if self.status is not Status.QUEUED or self.waits_until is None or now < self.waits_until:
            return False
        message = f"no device became free within {self.request.queue_timeout:g} s"
        self.fail(ErrorBody(code="queue_timeout", message=message, hint="See: toolcrib pool show"), now)
        return True

    def settlement(self) -> Settlement:
        """Return what the pool has to know after the last attempt ended."""
        again = self.status is Status.QUEUED
        return Settlement(
            kind=SettleKind.REQUEUE if again else SettleKind.RELEASE,
            task_id=self.task_id,
            lease=self.attempts[-1].lease,
            entry=replace(self.entry(known=True), backoff=self._backoff()) if again else None,
            end=self._lease_end(),
        )

    def withdrawal(self, *, confirmed: bool = True) -> Settlement:
        """Return what the pool has to know when the task no longer wants a device.

        Whether its host `confirmed` that the work has ended matters if that was cancelled.
        """
        return Settlement(kind=SettleKind.WITHDRAW, task_id=self.task_id, end=self._lease_end(confirmed=confirmed))

    def resetting(self) -> Settlement:
        """Return what the pool has to know after `begin_anew`; a task that has ended wants nothing more."""
        return Settlement(
            kind=SettleKind.RESET,
            task_id=self.task_id,
            before=self._begun_anew,
            entry=None if self.ended else self.entry(known=True),
        )

    def turning_down(self, lease: Lease) -> Settlement:
        """Return what the pool has to know of a lease that is `UNWANTED`; a task that still waits waits on."""
        waits = self.status is Status.QUEUED
        return Settlement(
            kind=SettleKind.REQUEUE if waits else SettleKind.RETURN,
            task_id=self.task_id,
            lease=lease,
            entry=self.entry(known=True) if waits else None,
        )

    # ---- inside

    def _lease_end(self, *, confirmed: bool = True) -> LeaseEnd | None:
        last = self.attempts[-1] if self.attempts else None
        if last is None or last.open:
            return None
        if last.outcome in _LAPSED or last.dirty:
            return LeaseEnd(lease_id=last.lease.id, served=False, reason=last.dirty or last.reason)
        if not confirmed:
            return LeaseEnd(lease_id=last.lease.id, served=False, reason="its host did not confirm that it has ended")
        if last.claimed_at is None or last.outcome is Outcome.RETURNED:
            return None
        return LeaseEnd(lease_id=last.lease.id, served=True)

    def _backoff(self) -> float:
        """Return how long the task waits after its last attempt: not at all if that was given back unused."""
        lapsed = sum(attempt.outcome in _LAPSED for attempt in self.attempts)
        if self.attempts[-1].outcome not in _LAPSED:
            return 0.0
        return RetryPolicy(maximum_attempts=self.max_attempts).interval_after(lapsed)

    def _again_or_fail(self, now: float) -> None:
        if self.counted_attempts < self.max_attempts:
            self.status, self.queued_since, self.started_at = moved(self.status, Status.QUEUED), now, None
            self.progress = self.message = None
            return
        last = self.attempts[-1]
        self.fail(
            ErrorBody(
                code="lease_expired",
                message=f"attempt {self.counted_attempts} of {self.max_attempts} on {last.lease.device_key} "
                f"{last.outcome}: {last.reason}",
                hint="See the task's attempts; submit it again, with --max-attempts for more of them.",
            ),
            now,
        )

    def _end(self, status: Status, now: float) -> None:
        self.status, self.finished_at = moved(self.status, status), now

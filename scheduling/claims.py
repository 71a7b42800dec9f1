"""Who may have the work of a lease, and whose word on its end counts."""

from __future__ import annotations

from toolcrib.scheduling.errors import (
    AlreadyClaimed,
    BadSignature,
    ErrorBody,
    HostSuperseded,
    LeaseExpired,
    LeaseSuperseded,
    NotOwner,
    ReportConflict,
    TaskEnded,
)
from toolcrib.scheduling.lease import Attempt, Outcome
from toolcrib.scheduling.messages import Claim, Report, ReportOutcome
from toolcrib.scheduling.signatures import claim_statement, is_signed, report_digest, report_statement

_VERDICTS = (ReportOutcome.DONE, ReportOutcome.FAILED)


def check_claim(attempt: Attempt, claim: Claim, now: float) -> None:
    """Let a claim on the lease of a task's newest attempt pass if its host may have the work now.

    Raises:
        NotOwner: the lease is another host's.
        BadSignature: the claim is not signed with the key that the lease's host was enrolled with.
        LeaseExpired: the lease is over, or its time to be claimed.
        HostSuperseded: the host has a newer worker.
        AlreadyClaimed: by another claim.
    """
    lease = attempt.lease
    if lease.host_id != claim.host_id:
        raise NotOwner(f"lease {claim.lease_id} is not of host {claim.host_id}")
    if not is_signed(claim_statement(claim), claim.signature, lease.host_key):
        raise BadSignature(f"the claim of lease {claim.lease_id} is not signed with the key of host {lease.host_id}")
    if not attempt.open:
        raise LeaseExpired(f"lease {claim.lease_id} is over: {attempt.outcome}")
    if claim.incarnation < attempt.least_incarnation:
        raise HostSuperseded(
            f"host {lease.host_id} has a newer worker: incarnation {attempt.least_incarnation}, not {claim.incarnation}"
        )
    if attempt.claim_id is not None and attempt.claim_id != claim.claim_id:
        raise AlreadyClaimed(f"lease {claim.lease_id} was claimed before")
    if attempt.claim_id is None and now > lease.claim_by + lease.ttl:
        raise LeaseExpired(f"lease {claim.lease_id} was to be claimed earlier")


def report_fault(attempt: Attempt, report: Report) -> str | None:
    """Return why a report is not believed as the end of an attempt; None if it is."""
    lease = attempt.lease
    if report.lease_id != lease.id:
        return "the host reported another lease"
    if not is_signed(report_statement(report, lease.host_id), report.signature, lease.host_key):
        return f"its report is not signed with the key of host {lease.host_id}"
    if attempt.claim_id is None and report.outcome in _VERDICTS:
        return "the host reported a result without a claim"
    if is_of_another_claim(attempt, report) and report.outcome is not ReportOutcome.RETURNED:
        return "the host reported for another claim"
    return None


def is_of_another_claim(attempt: Attempt, report: Report) -> bool:
    """Return whether who reports is not who claimed the lease, as when a reset brings a claimed lease once more."""
    return attempt.claim_id is not None and report.claim_id != attempt.claim_id


def standing(attempts: list[Attempt], report: Report) -> ErrorBody | None:
    """Return why a host's report is not on record; None if it is, or if its lease has not ended yet."""
    attempt = next((one for one in attempts if one.lease.id == report.lease_id), None)
    if attempt is None or (attempt is not attempts[-1] and attempt.report is None):
        return LeaseSuperseded(f"lease {report.lease_id} is not the newest of its task").body
    if attempt.open or attempt.report == report_digest(report):
        return None
    if attempt.report is not None:
        return ReportConflict(f"another report of lease {report.lease_id} is on record, and stands").body
    if attempt.outcome is Outcome.CANCELLED:
        return TaskEnded(f"the task of lease {report.lease_id} was cancelled").body
    return LeaseExpired(f"lease {report.lease_id} was over before: {attempt.reason or attempt.outcome}").body

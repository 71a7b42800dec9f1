"""A lease, and the record of the attempt that held it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from toolcrib.scheduling.names import device_key, lease_id

HOST_CARE: Final = 240.0
"""Seconds that a host gets beside the time of the work: to have the device checked, prepared and cleaned."""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The exclusive right of one attempt of a task to one device. Times are unix seconds, durations seconds."""

    task_id: str
    attempt: int
    host_id: str
    device_id: str
    fencing: int
    """Grows with every lease of a pool, so that a device's host can refuse whoever comes with an older one."""
    assigned_at: float
    claim_by: float
    """Until when the host may claim it."""
    ttl: float
    """Once claimed, it lapses when it was not renewed for this long."""
    incarnation: int = 0
    """Of the host's newest worker when the lease was granted: no older one may claim it."""
    host_key: str = ""
    """The public key that the host was enrolled with: only who has the private one can claim and end the lease."""

    @property
    def id(self) -> str:
        """The lease's id."""
        return lease_id(self.task_id, self.attempt, self.fencing)

    @property
    def device_key(self) -> str:
        """The leased device."""
        return device_key(self.host_id, self.device_id)


class Outcome(StrEnum):
    """How an attempt ended."""

    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"
    RETURNED = "returned"
    CANCELLED = "cancelled"
    REFUSED = "refused"


@dataclass(kw_only=True)
class Attempt:
    """One try of a task on one device, kept for ever on the task."""

    lease: Lease
    outcome: Outcome | None = None
    reason: str | None = None
    claim_id: str | None = None
    claimed_at: float | None = None
    machine: str = ""
    """Where it was claimed."""
    least_incarnation: int = 0
    """No older worker of the host may claim it."""
    ended_at: float | None = None
    report: str | None = None
    """The digest of the host's report, if that ended it."""
    dirty: str | None = None
    """Why its device could not be cleaned."""
    lingers: bool = False
    """Whether the host may still be at work, since it did not say itself that it is not."""

    def __post_init__(self) -> None:
        self.least_incarnation = max(self.least_incarnation, self.lease.incarnation)

    @property
    def open(self) -> bool:
        """Whether it still holds its device."""
        return self.outcome is None

    @property
    def counted(self) -> bool:
        """Whether it counts against the task's limit: one that was given back unused does not."""
        return self.outcome is not Outcome.RETURNED

    def end(self, outcome: Outcome, now: float, reason: str | None = None) -> None:
        """Close it, once."""
        self.outcome, self.ended_at, self.reason = outcome, now, reason

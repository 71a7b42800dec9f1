"""What clients, tasks, pools and hosts say to each other. Any of it may arrive twice, or late."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.errors import ErrorBody
from toolcrib.scheduling.lease import Lease


@dataclass(frozen=True, kw_only=True)
class QueueEntry:
    """A task as its pool's queue sees it. Times are unix seconds."""

    task_id: str
    constraints: Constraints
    priority: int = 3
    submitted_at: float | None = None
    """None: now. A task that comes back keeps its first one, and so its place."""
    attempts: int = 0
    """Attempts made so far."""
    max_attempts: int | None = None
    known: bool = False
    """Whether it was admitted before: then it is not refused for the queue's depth."""
    avoids: tuple[str, ...] = ()
    """Keys of devices on which it failed through no fault of its own."""
    backoff: float = 0.0
    """Seconds for which it keeps its place, and gets no device yet."""
    lease: Lease | None = None
    """The lease that it holds: then it tells of itself, and wants no other."""


@dataclass(frozen=True, kw_only=True)
class Admission:
    """The pool's answer to one entry: a place in the queue, a lease at once, or a refusal."""

    task_id: str
    submitted_at: float = 0.0
    start_by: float = 0.0
    """A task that starts later than this ignores the admission and asks again."""
    max_attempts: int = 3
    lease: Lease | None = None
    refused: ErrorBody | None = None


class SettleKind(StrEnum):
    """What a task tells its pool about a lease or its place in the queue."""

    RELEASE = "release"
    """The device is free."""
    REQUEUE = "requeue"
    """The device is free, and the task wants another."""
    RETURN = "return"
    """The task does not take this lease."""
    WITHDRAW = "withdraw"
    """The task no longer waits, and takes no lease that is still on its way."""
    RESET = "reset"
    """The task begins anew and knows nothing of the leases it had, whose work may not have ended yet."""


@dataclass(frozen=True, kw_only=True)
class LeaseEnd:
    """What the end of a lease says of its device."""

    lease_id: str
    served: bool
    """True: its host claimed and ended it. False: it lapsed, an infrastructure failure."""
    reason: str | None = None
    """How it lapsed."""


@dataclass(frozen=True, kw_only=True)
class Settlement:
    """One message from a task to its pool."""

    kind: SettleKind
    task_id: str
    lease: Lease | None = None
    entry: QueueEntry | None = None
    """With `requeue` and `reset`: how the task queues again."""
    before: float | None = None
    """With `reset`: leases that were assigned later, in unix seconds, are not meant."""
    end: LeaseEnd | None = None
    """None: the lease was given back unused, or there was none; that says nothing of the device."""


@dataclass(frozen=True, kw_only=True)
class LeaseOrder:
    """The input of the activity that runs one lease on a host. It holds no goal: that takes a claim."""

    lease: Lease
    pool: str
    timeout: float
    """Seconds the work may take."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A host's request for the work of a lease."""

    lease_id: str
    host_id: str
    claim_id: str
    """Random; the same one gets the same answer again."""
    incarnation: int = 0
    machine: str = ""
    """Tells this run of this machine, and its folder of locks, from all others."""
    signature: str = ""
    """Of `signatures.claim_statement`, with the host's key."""


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """The answer to a claim: what to run."""

    task_id: str
    attempt: int
    goal: str | None = None
    workflow: str | None = None
    work: str | None = None
    inputs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far the work of a lease is, from 0 to 1."""

    lease_id: str
    value: float
    message: str | None = None


class ReportOutcome(StrEnum):
    """How a host ended a lease."""

    DONE = "done"
    FAILED = "failed"
    RETURNED = "returned"
    """Unused."""
    ABANDONED = "abandoned"
    """The host could not go on with it, through no fault of the work."""
    STOPPED = "stopped"
    """Because it was cancelled; nothing of it runs any more."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """How a lease went, from the host that held it."""

    lease_id: str
    outcome: ReportOutcome
    result: Any = None
    error: ErrorBody | None = None
    """With all but `done`."""
    dirty: str | None = None
    """Why the device could not be cleaned after the work; None: it is clean."""
    claim_id: str | None = None
    incarnation: int = 0
    signature: str = ""
    """Of `signatures.report_statement`, with the host's key."""


@dataclass(frozen=True, kw_only=True)
class HostKey:
    """A host's public key, as an operator has it enrolled; None revokes it."""

    host_id: str
    public_key: str | None


@dataclass(frozen=True, kw_only=True)
class HostSnapshot:
    """A host and its devices, as its worker found them when it started."""

    host_id: str
    instance: str
    """Random, once per worker process: a repeated message is not a new incarnation."""
    devices: tuple[DeviceSpec, ...]
    serial: int = 0
    """Higher than that of the host's last registration: each is good once."""
    incarnation: int = 0
    """That the worker has already, when it registers again; else 0."""
    presence: int = 0
    """The serial of the registration under which it shows that it lives; 0: of this one."""
    machine: str = ""
    """As in `Claim`."""
    leases: tuple[Lease, ...] = ()
    """Those that it works on."""
    served: dict[str, int] = field(default_factory=dict)
    """The highest fencing number that each device has served, by device id."""
    workflows: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The workflow references that it runs, by driver type; of a type that is missing it does not say."""
    signature: str = ""
    """Of `signatures.registration_statement`, with the host's key."""


@dataclass(frozen=True, kw_only=True)
class HostStanding:
    """What a pool knows of a host that wants to register, or to know whether it has to."""

    instance: str = ""
    incarnation: int = 0
    serial: int = 0
    public_key: str | None = None
    """None: it is not enrolled."""
    tell: bool = False
    """Whether its worker is to register again, and say what it works on: work there has to end."""


@dataclass(frozen=True, kw_only=True)
class Registration:
    """The pool's answer to a host that registered."""

    incarnation: int
    """Counts the host's worker processes."""
    ttl: float
    """The host counts as silent after so many seconds without a heartbeat."""


@dataclass(frozen=True, kw_only=True)
class HostRestarted:
    """A host has a new worker; told to the tasks that hold leases of an older one."""

    host_id: str
    incarnation: int
    machine: str


@dataclass(frozen=True, kw_only=True)
class HostSilent:
    """A host stopped heartbeating, or said goodbye."""

    host_id: str
    incarnation: int
    reason: str
    registration: int | None = None
    """The serial of the one whose presence has ended: the host may have registered again before this arrives."""


@dataclass(frozen=True, kw_only=True)
class HostLeaves:
    """A host's worker begins to stop: it lets its work finish, and takes no new lease."""

    host_id: str
    incarnation: int


@dataclass(frozen=True, kw_only=True)
class DeviceOrder:
    """What an operator wants of a device."""

    key: str
    kind: Literal["drain", "resume", "quarantine"]
    reason: str | None = None
    """With `quarantine`."""


@dataclass(frozen=True, kw_only=True)
class HostOrder:
    """What an operator wants of a host and all of its devices."""

    host_id: str
    kind: Literal["drain", "resume"]


@dataclass(frozen=True, kw_only=True)
class Presence:
    """A host's worker that has registered with its pool."""

    host_id: str
    pool: str
    incarnation: int
    ttl: float
    """It counts as silent after so many seconds without a heartbeat."""
    registration: int | None = None
    """The serial of its registration."""


@dataclass(frozen=True, kw_only=True)
class AskedAfter:
    """What Temporal says of a pool's tasks."""

    gone: tuple[str, ...] = ()
    """Tasks that the pool knows, and whose workflow is closed."""
    missing: tuple[str, ...] = ()
    """Tasks that the pool knows, and of which there is no workflow: it was deleted, or is not started yet."""
    strangers: tuple[str, ...] = ()
    """Tasks that run in this pool's name, and that it does not know; they were asked to come forward."""
    run_id: str = ""
    """The run of the pool that asked."""

"""Short ways to write down what the rules are about: devices, hosts, entries, leases and the messages about them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from toolcrib.activities.host_keys import HostKeyPair
from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.device import DeviceSpec, DeviceState, PooledDevice
from toolcrib.scheduling.enrollment import enroll, standing_of
from toolcrib.scheduling.errors import ErrorBody, InvalidRequest
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import (
    Claim,
    HostKey,
    HostSnapshot,
    LeaseEnd,
    QueueEntry,
    Registration,
    Report,
    ReportOutcome,
    SettleKind,
    Settlement,
)
from toolcrib.scheduling.pool import PoolState
from toolcrib.scheduling.request import parse_request
from toolcrib.scheduling.scheduler import TaskScheduler
from toolcrib.scheduling.strategies import STRATEGIES, StrategyRegistry
from toolcrib.scheduling.task import Offer, TaskRecord
from toolcrib.scheduling.waiting import Waiting

START = 1_000_000.0
"""When things begin, in unix seconds."""

MAX_MESSAGE = 300
"""Bytes that the message of a refusal may have; it is sent and shown as it is."""


def device(device_id: str, *tags: str, driver_type: str = "local") -> DeviceSpec:
    """Return a device as its host describes it."""
    return DeviceSpec(id=device_id, driver="local", driver_type=driver_type, tags=tags)


def pooled(device_id: str, *tags: str, **fields: Any) -> PooledDevice:
    """Return a device of host `h`, as its pool knows it; idle and in service unless `fields` say otherwise."""
    given = {"host_id": "h", "driver_type": "local", "state": DeviceState.IDLE, "since": START, **fields}
    return PooledDevice(device_id=device_id, tags=tags, **given)


def key_of(host_id: str) -> HostKeyPair:
    """Return the key of a host; it is always the same one."""
    return HostKeyPair(host_id, Ed25519PrivateKey.from_private_bytes(hashlib.sha256(host_id.encode()).digest()))


def snapshot(
    host_id: str, devices: Iterable[DeviceSpec], instance: str = "one", serial: int = 1, **told: Any
) -> HostSnapshot:
    """Return what a host says to pool `default` when it registers for the `serial`-th time after `START`."""
    said = HostSnapshot(host_id=host_id, instance=instance, devices=tuple(devices), serial=int(START) + serial, **told)
    return key_of(host_id).signed_snapshot(said, "default")


def register(
    scheduler: TaskScheduler,
    host_id: str,
    devices: Iterable[DeviceSpec],
    now: float = START,
    instance: str = "one",
    **told: Any,
) -> Registration:
    """Have a host enrolled, and registered once more; it tells what else `HostSnapshot` has."""
    enroll(scheduler.records, HostKey(host_id=host_id, public_key=key_of(host_id).public), now)
    serial = standing_of(scheduler.records, host_id).serial + 1
    said = HostSnapshot(host_id=host_id, instance=instance, devices=tuple(devices), serial=serial, **told)
    return scheduler.register(key_of(host_id).signed_snapshot(said, "default"), now)


def pool(*devices: DeviceSpec, registry: StrategyRegistry = STRATEGIES, **config: Any) -> TaskScheduler:
    """Return a pool without a cap, unless one is given, and with one host `h` that has `devices`."""
    settings = PoolConfig(**{"max_concurrent": None, **config})
    scheduler = TaskScheduler(PoolState(name="default", config=settings), registry)
    if devices:
        register(scheduler, "h", devices)
    return scheduler


def entry(task_id: str, *tags: str, **fields: Any) -> QueueEntry:
    """Return how a task asks for a place; `fields` are those of `Constraints` and of `QueueEntry`."""
    demand = {name: fields.pop(name) for name in ("driver_type", "device_id", "host_id", "workflow") if name in fields}
    return QueueEntry(task_id=task_id, constraints=Constraints(tags=tags, **demand), **fields)


def waiting(task_id: str, sequence: int, **fields: Any) -> Waiting:
    """Return a task in the queue that asks for nothing in particular and came first, unless `fields` say otherwise."""
    given: dict[str, Any] = {
        "constraints": Constraints(),
        "priority": 3,
        "submitted_at": START,
        "attempts": 0,
        "max_attempts": None,
        "check_at": START,
        "heard_at": START,
        **fields,
    }
    return Waiting(task_id=task_id, sequence=sequence, **given)


def holders(scheduler: TaskScheduler) -> dict[str, str]:
    """Return which task holds which device, by task id."""
    return {lease.task_id: lease.device_id for lease in scheduler.held}


def settlement(
    kind: SettleKind, lease: Lease, again: QueueEntry | None = None, end: LeaseEnd | None = None
) -> Settlement:
    """Return what the task of `lease` says about it; `again` is how it queues again, `end` is about the device."""
    return Settlement(kind=kind, task_id=lease.task_id, lease=lease, entry=again, end=end)


def served(lease: Lease) -> Settlement:
    """Return what a task says whose work has ended."""
    return settlement(SettleKind.RELEASE, lease, end=LeaseEnd(lease_id=lease.id, served=True))


def lapsed(lease: Lease, *tags: str, avoids: tuple[str, ...] = (), **fields: Any) -> Settlement:
    """Return what a task says whose lease has lapsed, and that wants another device; `fields` are those of `entry`."""
    tried = (*avoids, lease.device_key)
    again = entry(lease.task_id, *tags, attempts=lease.attempt, known=True, avoids=tried, **fields)
    end = LeaseEnd(lease_id=lease.id, served=False, reason="the host stopped renewing it")
    return settlement(SettleKind.REQUEUE, lease, again, end)


def task(max_attempts: int = 3, **request: Any) -> TaskRecord:
    """Return a new task called `t`."""
    record = TaskRecord("t", parse_request({"goal": "echo", **request}), START)
    record.max_attempts = max_attempts
    return record


def lease(attempt: int = 1, **fields: Any) -> Lease:
    """Return a lease of task `t` on device `h/d`, with a fencing number that grows with the attempt."""
    given = {"task_id": "t", "host_id": "h", "device_id": "d", "fencing": 100 + attempt, "assigned_at": START}
    made = Lease(**{"attempt": attempt, "claim_by": START + 30.0, "ttl": 15.0, **given, **fields})
    return made if made.host_key else replace(made, host_key=key_of(made.host_id).public)


def claim(
    of: Lease, claim_id: str = "c1", host_id: str | None = None, incarnation: int | None = None, machine: str = "m"
) -> Claim:
    """Return the request of the lease's host, or of another, for its work."""
    worker = of.incarnation if incarnation is None else incarnation
    return key_of(host_id or of.host_id).claim(of.id, claim_id, worker, machine)


def report(of: Lease, outcome: ReportOutcome, result: Any = None, claim_id: str = "c1") -> Report:
    """Return how the host says a lease went."""
    error = None if outcome is ReportOutcome.DONE else ErrorBody(code="task_failed", message=f"it was {outcome}")
    said = Report(lease_id=of.id, outcome=outcome, result=result, error=error, claim_id=claim_id)
    return key_of(of.host_id).signed_report(said)


def assigned(record: TaskRecord) -> Lease:
    """Give a task that waits its next lease."""
    offered = lease(len(record.attempts) + 1)
    assert record.offer(offered, START) is Offer.TAKEN
    return offered


def dispatched(record: TaskRecord) -> Lease:
    """Give a task that waits its next lease, and have it claimed."""
    offered = assigned(record)
    record.claim(claim(offered), START + 1)
    return offered


def busy_pool() -> TaskScheduler:
    """Return a pool with one device, and three tasks: `t1` holds it, `t2` and `t3` wait."""
    scheduler = pool(device("d"))
    scheduler.admit([entry("t1"), entry("t2"), entry("t3")], START)
    return scheduler


def queued(scheduler: TaskScheduler) -> list[str]:
    """Return who waits, first served first."""
    return [waits.task_id for waits in scheduler.queue.in_order()]


def again(expired: Lease) -> Settlement:
    """Return what a task says whose lease has expired, and that wants another."""
    return settlement(SettleKind.REQUEUE, expired, entry(expired.task_id, attempts=expired.attempt, known=True))


def refusal(**fields: Any) -> str:
    """Return how a request is refused, having checked that the message is short and can be sent, and has a hint."""
    try:
        parse_request(fields)
    except InvalidRequest as refused:
        if len(refused.message.encode()) > MAX_MESSAGE or not refused.hint:
            raise
        return refused.message
    raise AssertionError(f"accepted: {fields}")

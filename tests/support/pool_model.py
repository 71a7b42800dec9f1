"""A pool written down once more, as plainly as can be: the whole queue is sorted and searched for every single grant.

It knows nothing of buckets, heads, weights or times of asking; `TaskScheduler` has to decide the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.messages import HostSilent, HostSnapshot, QueueEntry, SettleKind, Settlement
from toolcrib.scheduling.names import device_key


@dataclass(kw_only=True)
class ModelTask:
    """A task that was admitted and has not ended."""

    demand: Constraints
    priority: int
    submitted_at: float
    arrival: int
    heard_at: float
    device: str | None = None
    lease_id: str | None = None


@dataclass(kw_only=True)
class ModelHost:
    """A host that has registered."""

    instance: str
    incarnation: int
    devices: Sequence[str]
    online: bool = True


@dataclass
class PoolModel:
    """What a pool is expected to do."""

    cap: int | None
    depth: int
    strategy: str = "fifo_match"
    tasks: dict[str, ModelTask] = field(default_factory=dict)
    devices: dict[str, tuple[str, DeviceSpec]] = field(default_factory=dict)
    hosts: dict[str, ModelHost] = field(default_factory=dict)
    arrivals: int = 0

    @property
    def queued(self) -> list[str]:
        """The tasks that wait, first served first."""
        return sorted((task_id for task_id, task in self.tasks.items() if task.device is None), key=self._place)

    @property
    def held(self) -> dict[str, str]:
        """Which task has which device."""
        return {task_id: task.device for task_id, task in self.tasks.items() if task.device is not None}

    @property
    def idle(self) -> list[str]:
        """The devices that may be given away, in the order of their registration."""
        taken = self.held.values()
        return [key for key, (host, _) in self.devices.items() if self.hosts[host].online and key not in taken]

    def fits(self, task_id: str, key: str) -> bool:
        """Return whether a task may have a device."""
        demand, (host, spec) = self.tasks[task_id].demand, self.devices[key]
        wanted = (
            (demand.driver_type, spec.driver_type),
            (demand.device_id, spec.id),
            (demand.host_id, host),
        )
        return all(asked in (None, there) for asked, there in wanted) and set(demand.tags) <= set(spec.tags)

    def admit(self, entries: Iterable[QueueEntry], now: float) -> list[bool]:
        """Take tasks in, and return for each whether it was."""
        answers = []
        for entry in entries:
            known = entry.task_id in self.tasks
            taken = known or entry.known or len(self.queued) < self.depth
            if known:
                self.tasks[entry.task_id].heard_at = now
            elif taken:
                self._queue(entry, now, None)
                self.decide()
            answers.append(taken)
        return answers

    def settle(self, messages: Iterable[Settlement], now: float) -> None:
        """Take back what these messages give back."""
        for message in messages:
            task = self.tasks.get(message.task_id)
            in_time = task is not None and message.lease is not None and task.lease_id == message.lease.id
            waits = task is not None and task.device is None
            if in_time or (message.kind is SettleKind.WITHDRAW and (waits or message.lease is None)):
                self.tasks.pop(message.task_id, None)
            if message.kind is SettleKind.REQUEUE and message.entry and message.task_id not in self.tasks:
                self._queue(message.entry, now, task if in_time else None)
            self._forget_devices()
        self.decide()

    def register(self, snapshot: HostSnapshot) -> int:
        """Take in a host."""
        before = self.hosts.get(snapshot.host_id)
        same = before is not None and before.instance == snapshot.instance
        host = ModelHost(
            instance=snapshot.instance,
            incarnation=(before.incarnation if before else 0) + (not same),
            devices=[spec.id for spec in snapshot.devices],
        )
        self.hosts[snapshot.host_id] = host
        for spec in snapshot.devices:
            self.devices[device_key(snapshot.host_id, spec.id)] = (snapshot.host_id, spec)
        self._forget_devices()
        self.decide()
        return host.incarnation

    def silence(self, message: HostSilent) -> None:
        """Take a host out, unless a newer worker of its speaks."""
        host = self.hosts.get(message.host_id)
        if host is not None and host.incarnation == message.incarnation:
            host.online = False

    def decide(self) -> None:
        """Give devices away until nobody can get one."""
        while (pair := self._next_pair()) is not None:
            self.tasks[pair[0]].device = pair[1]

    def _next_pair(self) -> tuple[str, str] | None:
        if self.cap is not None and len(self.held) >= self.cap:
            return None
        pairs = ((task_id, key) for task_id in self.queued for key in self.idle if self.fits(task_id, key))
        return next(pairs, None)

    def _place(self, task_id: str) -> tuple[float, ...]:
        task = self.tasks[task_id]
        first = (task.priority,) if self.strategy == "priority_fifo" else ()
        return (*first, task.submitted_at, task.arrival)

    def _queue(self, entry: QueueEntry, now: float, before: ModelTask | None) -> None:
        asked = now if entry.submitted_at is None else entry.submitted_at
        self.tasks[entry.task_id] = ModelTask(
            demand=entry.constraints,
            priority=entry.priority,
            submitted_at=before.submitted_at if before else asked,
            arrival=before.arrival if before else self.arrivals,
            heard_at=now,
        )
        self.arrivals += before is None

    def _forget_devices(self) -> None:
        taken = self.held.values()
        for key, (host, spec) in list(self.devices.items()):
            if spec.id not in self.hosts[host].devices and key not in taken:
                del self.devices[key]

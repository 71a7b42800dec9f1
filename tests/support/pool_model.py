"""A pool written down once more, as plainly as can be: the whole queue is sorted and searched for every single grant.

It knows nothing of buckets, heads, weights or times of asking; `TaskScheduler` has to decide the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.messages import (
    DeviceOrder,
    HostLeaves,
    HostOrder,
    HostSilent,
    HostSnapshot,
    LeaseEnd,
    QueueEntry,
    SettleKind,
    Settlement,
)
from toolcrib.scheduling.names import device_key


@dataclass(kw_only=True)
class ModelTask:
    """A task that was admitted and has not ended."""

    demand: Constraints
    priority: int
    submitted_at: float
    arrival: int
    heard_at: float
    avoids: Sequence[str] = ()
    not_before: float = 0.0
    device: str | None = None
    lease_id: str | None = None
    after: str | None = None
    """The device on which its work has to end before it waits again."""


@dataclass(kw_only=True)
class Ending:
    """A lease that its task let go of, and that holds its device until its work must have ended."""

    task_id: str
    lease_id: str | None
    before: ModelTask
    until: float


@dataclass(kw_only=True)
class ModelDevice:
    """A device, and what is held against it."""

    host: str
    spec: DeviceSpec
    in_service: bool = True
    failures: int = 0
    rests_until: float = 0.0
    quarantined: bool = False


@dataclass(kw_only=True)
class ModelHost:
    """A host that has registered."""

    instance: str
    incarnation: int
    devices: Sequence[str]
    driver_types: Sequence[str] = ()
    online: bool = True
    in_service: bool = True
    enrolled: bool = True
    workflows: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def runs(self, workflow: str | None, driver_type: str) -> bool:
        """Return whether it says, or does not deny, that it runs a workflow on its devices of one type."""
        said = self.workflows.get(driver_type)
        if workflow is None or said is None:
            return True
        return workflow in [text for reference in said for text in (reference, reference.split("@")[0])]


@dataclass
class PoolModel:
    """What a pool is expected to do."""

    cap: int | None
    depth: int
    strategy: str = "fifo_match"
    tasks: dict[str, ModelTask] = field(default_factory=dict)
    devices: dict[str, ModelDevice] = field(default_factory=dict)
    hosts: dict[str, ModelHost] = field(default_factory=dict)
    arrivals: int = 0
    ending: dict[str, Ending] = field(default_factory=dict)
    """By device."""
    decided_at: float = 0.0
    """When it gave devices away last: those that rested till then were awake."""

    @property
    def queued(self) -> list[str]:
        """The tasks that wait, first served first."""
        waiting = (task_id for task_id, task in self.tasks.items() if task.device is None and task.after is None)
        return sorted(waiting, key=self._place)

    @property
    def due(self) -> list[str]:
        """Those of them that may have a device, if one fits."""
        return [task_id for task_id in self.queued if self.tasks[task_id].not_before <= self.decided_at]

    @property
    def held(self) -> dict[str, str]:
        """Which task has which device."""
        return {task_id: task.device for task_id, task in self.tasks.items() if task.device is not None}

    @property
    def idle(self) -> list[str]:
        """The devices that may be given away, in the order of their registration."""
        return [key for key in self.devices if self.state(key) == "idle" and self.in_service(key)]

    def in_service(self, key: str) -> bool:
        """Return whether neither a device nor its host is out of service."""
        device = self.devices[key]
        return device.in_service and self.hosts[device.host].in_service

    def state(self, key: str) -> str:
        """Return the state that a device is in."""
        device = self.devices[key]
        if key in self.held.values():
            return "leased"
        if key in self.ending:
            return "releasing"
        if device.quarantined:
            return "quarantined"
        if device.rests_until > self.decided_at:
            return "resting"
        return "idle" if self.hosts[device.host].online else "offline"

    def comes_free(self, key: str) -> bool:
        """Return whether a device will be idle by itself sooner or later, if it is not."""
        device = self.devices[key]
        return self.in_service(key) and self.hosts[device.host].online and not device.quarantined

    def fits(self, task_id: str, key: str) -> bool:
        """Return whether a device is what a task asks for."""
        demand, device = self.tasks[task_id].demand, self.devices[key]
        wanted = (
            (demand.driver_type, device.spec.driver_type),
            (demand.device_id, device.spec.id),
            (demand.host_id, device.host),
        )
        runs = self.hosts[device.host].runs(demand.workflow, device.spec.driver_type)
        alike = all(asked in (None, there) for asked, there in wanted)
        return alike and runs and set(demand.tags) <= set(device.spec.tags)

    def avoids(self, task_id: str, key: str) -> bool:
        """Return whether a task leaves a device alone, because it failed there and can go elsewhere."""
        avoided = self.tasks[task_id].avoids
        return key in avoided and any(
            self.fits(task_id, other) and self.comes_free(other) for other in self.devices if other not in avoided
        )

    def admit(self, entries: Iterable[QueueEntry], now: float) -> list[bool]:
        """Take tasks in, and return for each whether it was."""
        answers = []
        for entry in entries:
            known, ending = entry.task_id in self.tasks, self._ending_of(entry.task_id)
            taken = known or ending is not None or entry.known or self._takes(entry)
            if known:
                self.tasks[entry.task_id].heard_at = now
            elif taken:
                self._queue(entry, now, None)
                self.tasks[entry.task_id].after = ending
                if ending is None:
                    self.decide(now)
            answers.append(taken)
        return answers

    def _takes(self, entry: QueueEntry) -> bool:
        """Return whether a task that is new may come in: there is room, and a host that may have its workflow."""
        workflow, hosts = entry.constraints.workflow, [host for host in self.hosts.values() if host.enrolled]
        kinds = [(host, driver_type) for host in hosts for driver_type in host.driver_types]
        known = not kinds or any(host.runs(workflow, driver_type) for host, driver_type in kinds)
        return known and len(self.queued) < self.depth

    def settle(self, messages: Iterable[Settlement], now: float) -> None:
        """Take back what these messages give back."""
        for message in messages:
            if message.kind is SettleKind.RESET:
                self._begin_anew(message, now)
                continue
            before = self._take_back(message, now)
            task = self.tasks.get(message.task_id)
            if message.kind is SettleKind.WITHDRAW and task and task.device is None and task.after is None:
                del self.tasks[message.task_id]
            self._forget_devices()
            known = message.task_id in self.tasks or self._ending_of(message.task_id)
            if message.kind is SettleKind.REQUEUE and message.entry and not known:
                self._queue(message.entry, now, before)
        self.decide(now)

    def lose(self, task_ids: Iterable[str], now: float) -> None:
        """Take back what tasks have whose workflows are gone."""
        for task_id in task_ids:
            self._let_go(task_id, self.tasks.pop(task_id), now)
        self.decide(now)

    def _take_back(self, message: Settlement, now: float) -> ModelTask | None:
        """Free the device of the lease that a message is about, and return the task as it was."""
        task, key = self.tasks.get(message.task_id), self._ending_of(message.task_id)
        lease_id = message.lease.id if message.lease else None
        everything = message.kind is SettleKind.WITHDRAW and message.lease is None
        if key is not None and lease_id is not None and self.ending[key].lease_id == lease_id:
            before = self.ending[key].before
            self._judge(key, lease_id, message.end, now)
            self._end(key)
            return before
        if key is not None and everything:
            self.tasks.pop(message.task_id, None)
        elif task is not None and task.device is not None and (everything or task.lease_id == lease_id):
            self._judge(task.device, task.lease_id, message.end, now)
            return self.tasks.pop(message.task_id)
        return None

    def _begin_anew(self, message: Settlement, now: float) -> None:
        key, task = self._ending_of(message.task_id), self.tasks.pop(message.task_id, None)
        if key is not None:
            before: ModelTask | None = self.ending[key].before
        else:
            before = task
            key = self._let_go(message.task_id, task, now) if task else None
        if message.entry is not None:
            self._queue(message.entry, now, before)
            task = self.tasks[message.task_id]
            task.after = key
            if message.before is not None and now <= message.before:
                task.not_before = max(task.not_before, message.before + 0.001)

    def _let_go(self, task_id: str, task: ModelTask, now: float) -> str | None:
        if task.device is not None:
            self.ending[task.device] = Ending(task_id=task_id, lease_id=task.lease_id, before=task, until=now + 15)
        return task.device

    def _ending_of(self, task_id: str) -> str | None:
        return next((key for key, ending in self.ending.items() if ending.task_id == task_id), None)

    def _end(self, key: str) -> None:
        ending = self.ending.pop(key)
        if (task := self.tasks.get(ending.task_id)) is not None and task.after == key:
            task.after = None
        self._forget_devices()

    def register(self, snapshot: HostSnapshot, now: float) -> int:
        """Take in a host."""
        before = self.hosts.get(snapshot.host_id)
        same = before is not None and before.instance == snapshot.instance
        host = ModelHost(
            instance=snapshot.instance,
            incarnation=(before.incarnation if before else 0) + (not same),
            devices=[spec.id for spec in snapshot.devices],
            in_service=before.in_service if before else True,
            workflows=snapshot.workflows,
            driver_types=[spec.driver_type for spec in snapshot.devices],
        )
        self.hosts[snapshot.host_id] = host
        for spec in snapshot.devices:
            key = device_key(snapshot.host_id, spec.id)
            self.devices.setdefault(key, ModelDevice(host=snapshot.host_id, spec=spec)).spec = spec
        for spec in snapshot.devices:
            if (key := device_key(snapshot.host_id, spec.id)) in self.ending:
                self._end(key)
        self._forget_devices()
        self.decide(now)
        return host.incarnation

    def silence(self, message: HostSilent | HostLeaves, now: float) -> bool:
        """Take a host out, unless a newer worker of its speaks, and return whether it was."""
        host = self.hosts.get(message.host_id)
        if host is None or host.incarnation != message.incarnation:
            return False
        host.online = False
        self.decide(now)
        return True

    def order(self, order: DeviceOrder | HostOrder, now: float) -> bool:
        """Do what an operator wants, and return whether there is such a device or host."""
        if isinstance(order, HostOrder):
            if order.host_id not in self.hosts:
                return False
            self.hosts[order.host_id].in_service = order.kind == "resume"
        elif (device := self.devices.get(order.key)) is not None:
            if order.kind == "resume":
                self.devices[order.key] = ModelDevice(host=device.host, spec=device.spec)
            device.in_service &= order.kind != "drain"
            device.quarantined |= order.kind == "quarantine"
        else:
            return False
        self.decide(now)
        return True

    def decide(self, now: float) -> None:
        """Give devices away until nobody can get one."""
        self.decided_at = now
        for key in [key for key, ending in self.ending.items() if ending.until <= now]:
            self._end(key)
        while (pair := self._next_pair()) is not None:
            self.tasks[pair[0]].device = pair[1]

    def _next_pair(self) -> tuple[str, str] | None:
        if self.cap is not None and len(self.held) + len(self.ending) >= self.cap:
            return None
        pairs = ((task_id, key) for task_id in self.due for key in self._choices(task_id))
        return next(pairs, None)

    def _choices(self, task_id: str) -> list[str]:
        hosts = {key.partition("/")[0] for key in self.tasks[task_id].avoids}
        choices = [key for key in self.idle if self.fits(task_id, key) and not self.avoids(task_id, key)]
        return sorted(choices, key=lambda key: self.devices[key].host in hosts)

    def _judge(self, key: str, lease_id: str | None, end: LeaseEnd | None, now: float) -> None:
        if end is None or end.lease_id != lease_id:
            return
        device = self.devices[key]
        device.failures = 0 if end.served else device.failures + 1
        device.rests_until = now + 10 * device.failures
        device.quarantined |= device.failures >= 3

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
            avoids=[key for key in entry.avoids if key in self.devices][-5:],
            not_before=now + entry.backoff if entry.backoff > 0 else 0.0,
        )
        self.arrivals += before is None

    def _forget_devices(self) -> None:
        taken = [*self.held.values(), *self.ending]
        for key, device in list(self.devices.items()):
            if device.spec.id not in self.hosts[device.host].devices and key not in taken:
                del self.devices[key]

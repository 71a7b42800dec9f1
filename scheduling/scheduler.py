"""TaskScheduler: the rules' entry point. Commands come in with the time, decisions go out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.device import DeviceState, PooledDevice
from toolcrib.scheduling.errors import ErrorBody, QueueFull
from toolcrib.scheduling.health import judge, next_wake, wake
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.matching import matches
from toolcrib.scheduling.messages import (
    Admission,
    AskedAfter,
    DeviceOrder,
    HostLeaves,
    HostOrder,
    HostSilent,
    HostSnapshot,
    QueueEntry,
    Registration,
    SettleKind,
    Settlement,
)
from toolcrib.scheduling.pool import Held, PoolState
from toolcrib.scheduling.registration import device_freed, leave_host, register_host, silence_host
from toolcrib.scheduling.service import carry_out, check_order
from toolcrib.scheduling.strategies import STRATEGIES, Rank, StrategyRegistry, checked_rank
from toolcrib.scheduling.waiting import MAX_WEIGHT, TaskQueue, Waiting

START_WITHIN: Final = 30.0
"""A client has so many seconds to start the task it had admitted."""
CHECK_AFTER: Final = START_WITHIN + 5.0
"""The pool asks Temporal so long after an admission or a grant whether the task runs."""
MAX_PROBLEM_LENGTH: Final = 500
MAX_AVOIDED: Final = 5
"""Devices that one task avoids, those that it had last: they are part of the pool's state."""
RENEW_PLACE_AFTER: Final = 600.0
"""A queued task asks again for its place this often; the pool asks after one that did not."""


class TaskScheduler:
    """Owns every assignment of one pool. All times are unix seconds and come in as `now`."""

    def __init__(self, state: PoolState, registry: StrategyRegistry = STRATEGIES) -> None:
        self._state = state
        self._registry = registry
        self._queue = self._index(state.queue)

    @property
    def config(self) -> PoolConfig:
        """The pool's settings."""
        return self._state.config

    @property
    def name(self) -> str:
        """The pool's name."""
        return self._state.name

    @property
    def problem(self) -> str | None:
        """Why the strategy grants nothing, if it raised."""
        return self._state.problem

    @property
    def records(self) -> PoolState:
        """What the pool knows, but for its queue."""
        return self._state

    @property
    def devices(self) -> list[PooledDevice]:
        """The pool's devices, in registration order."""
        return list(self._state.devices.values())

    def in_service(self, device: PooledDevice) -> bool:
        """Return whether its operator lets tasks have `device`."""
        return self._state.in_service(device)

    @property
    def held(self) -> list[Lease]:
        """The leases that are out."""
        return [held.lease for held in self._state.held.values()]

    @property
    def below_cap(self) -> bool:
        """Whether the pool may have one more lease out."""
        cap = self.config.max_concurrent
        return cap is None or len(self._state.held) < cap

    @property
    def queue(self) -> TaskQueue:
        """The tasks that wait."""
        return self._queue

    @property
    def state(self) -> PoolState:
        """The pool's state, fit to be serialised."""
        self._state.queue = self._queue.in_order()
        return self._state

    # ---- tasks

    def refusal(self, entry: QueueEntry) -> ErrorBody | None:
        """Return why `entry` cannot be admitted now; None if it can."""
        if entry.known or self._knows(entry.task_id):
            return None
        depth = self.config.max_queue_depth
        if len(self._queue) >= depth:
            return QueueFull(
                f"pool {self._state.name!r} has {len(self._queue)} queued tasks, its limit is {depth}"
            ).body
        if self._queue.weight_with(entry.task_id, entry.constraints, entry.avoids) > MAX_WEIGHT:
            return QueueFull(f"the queue of pool {self._state.name!r} takes more than {MAX_WEIGHT:,} bytes").body
        return None

    def admit(self, entries: Sequence[QueueEntry], now: float) -> list[Admission]:
        """Give each entry a place in the queue, or a device at once, or a refusal.

        A task that is known already gets the same answer again. Only its first answer counts as the delivery of a
        lease: a later one may be to a question that was asked long ago, and that nobody listens for any more.
        """
        refusals = [self._take_in(entry, now) for entry in entries]
        return [self._admission(entry, refusal, now) for entry, refusal in zip(entries, refusals, strict=True)]

    def settle(self, messages: Iterable[Settlement], now: float) -> None:
        """Take back what tasks give back, and assign it again in the same decision."""
        for message in messages:
            before = self._take_back(message, now)
            if message.kind is SettleKind.WITHDRAW:
                self._queue.remove(message.task_id)
            elif message.kind is SettleKind.REQUEUE and message.entry and not self._knows(message.entry.task_id):
                self._enqueue(message.entry, now, before)
        self.assign(now)

    def assign(self, now: float) -> list[Lease]:
        """Bind waiting tasks to idle devices that fit, as the strategy says, and return the new leases.

        Each grant is recorded whole: task, attempt, device, deadlines and fencing number. None to make is no error.
        While the strategy cannot say where each task stands there is no order, and so there are no grants. Devices
        that have rested long enough take part.
        """
        wake(self._state, now)
        devices = self._state.devices.values()
        idle = [device for device in devices if device.state is DeviceState.IDLE and self.in_service(device)]
        if not idle or not self.below_cap or self._queue.unranked:
            return []
        grants: list[Lease] = []
        try:
            strategy = self._registry.get(self.config.strategy)
            for task, device in matches(self._queue, idle, self.coming, strategy, lambda: self.below_cap):
                grants.append(self._grant(task, device, now))
            self._state.problem = None
        except Exception as error:  # noqa: BLE001 - a third party's strategy must not take the pool down
            self._note_problem(error)
        return grants

    # ---- delivery, and tasks that are gone

    @property
    def undelivered(self) -> list[Lease]:
        """Leases whose tasks have to be told."""
        return [held.lease for held in self._state.held.values() if not held.told]

    def delivered(self, leases: Iterable[Lease]) -> None:
        """Note that these tasks know of their leases."""
        for lease in leases:
            if (held := self._state.held.get(lease.task_id)) is not None and held.lease == lease:
                held.told = True

    @property
    def busy(self) -> bool:
        """Whether any task waits or holds a device."""
        return bool(self._state.held) or len(self._queue) > 0

    def coming(self) -> Iterator[PooledDevice]:
        """Yield the devices that are free for a task or will be by themselves, in registration order."""
        return (device for device in self._state.devices.values() if self._state.comes_free(device))

    def next_wake(self) -> float | None:
        """Return when `assign` has to be called because a device will have rested; None if none rests."""
        return next_wake(self._state)

    def next_check(self) -> float | None:
        """Return when the pool has to ask after a task next."""
        return min((task.check_at for task in self._tasks()), default=None)

    def overdue(self, now: float, limit: int = 100) -> list[str]:
        """Return tasks that should have been heard of by now, the longest overdue first."""
        late = sorted((task.check_at, task.task_id) for task in self._tasks() if task.check_at <= now)
        return [task_id for _, task_id in late[:limit]]

    def asked_after(self, found: AskedAfter, asked_at: float, now: float) -> list[str]:
        """Take what Temporal said of some tasks when asked at `asked_at`, and return those that were taken back.

        A task that spoke in the meantime is believed instead.
        """
        for task_id in found.alive:
            if (task := self._task(task_id)) is not None:
                task.check_at = now + self._patience(task_id)
        taken = [
            task_id for task_id in found.gone if (task := self._task(task_id)) is not None and task.heard_at < asked_at
        ]
        self.settle([Settlement(kind=SettleKind.WITHDRAW, task_id=task_id) for task_id in taken], now)
        return taken

    # ---- hosts and settings

    def holders_before(self, host_id: str, incarnation: int) -> list[str]:
        """Return the tasks with leases that were granted to an older worker of the host."""
        return [lease.task_id for lease in self.held if lease.host_id == host_id and lease.incarnation < incarnation]

    def register(self, snapshot: HostSnapshot, now: float) -> Registration:
        """Take in a host with its devices.

        Raises:
            ToolcribError: as `registration.check_registration`.
        """
        incarnation = register_host(self._state, snapshot, now)
        self.assign(now)
        return Registration(incarnation=incarnation, ttl=self.config.lease_ttl)

    def silence(self, message: HostSilent, now: float) -> None:
        """Take a host out that no longer heartbeats; leases it has out live until they expire."""
        silence_host(self._state, message, now)

    def leave(self, message: HostLeaves, now: float) -> list[Lease]:
        """Grant nothing more on a host whose worker begins to stop, and return the leases that are out on it.

        An older worker than the host's newest is told of none.
        """
        newest = leave_host(self._state, message, now)
        return [lease for lease in self.held if newest and lease.host_id == message.host_id]

    def check_order(self, order: DeviceOrder | HostOrder) -> None:
        """Let an operator's order pass that can be carried out.

        Raises:
            UnknownDevice: the pool has no such device or host.
            InvalidRequest: a quarantine without a reason, or with one that cannot be kept.
        """
        check_order(self._state, order)

    def order(self, order: DeviceOrder | HostOrder, now: float) -> None:
        """Let tasks have a device, or a host's devices, or not, as an operator wants; what runs there may finish.

        Raises:
            UnknownDevice, InvalidRequest: as `check_order`.
        """
        carry_out(self._state, order, now)
        self.assign(now)

    def configure(self, config: PoolConfig, now: float) -> None:
        """Change the settings.

        Raises:
            UnknownStrategy: no strategy of that name is registered.
        """
        self._registry.get(config.strategy)
        waiting = self._queue.in_order()
        self._state.config, self._state.problem = config, None
        self._queue = self._index(waiting)
        self.assign(now)

    # ---- inside

    def _grant(self, task: Waiting, device: PooledDevice, now: float) -> Lease:
        self._queue.remove(task.task_id)
        state = self._state
        state.last_fencing = max(state.last_fencing + 1, int(now * 1000))
        task.attempts += 1
        task.check_at = now + CHECK_AFTER
        host = state.hosts[device.host_id]
        lease = Lease(
            task_id=task.task_id,
            attempt=task.attempts,
            host_id=device.host_id,
            device_id=device.device_id,
            fencing=state.last_fencing,
            assigned_at=now,
            claim_by=now + self.config.claim_timeout,
            ttl=self.config.lease_ttl,
            incarnation=host.incarnation,
            host_key=host.public_key or "",
        )
        state.held[task.task_id] = Held(lease=lease, task=task)
        device.turn(DeviceState.LEASED, now)
        return lease

    def _take_in(self, entry: QueueEntry, now: float) -> ErrorBody | None:
        """Queue a task that is new, and give it a device if it can have one at once; or return why not."""
        if (task := self._task(entry.task_id)) is not None:
            task.heard(now, self._patience(entry.task_id))
        elif (refusal := self.refusal(entry)) is not None:
            return refusal
        else:
            self._enqueue(entry, now)
            self.assign(now)
            if (held := self._state.held.get(entry.task_id)) is not None:
                held.told = True
        return None

    def _take_back(self, message: Settlement, now: float) -> Waiting | None:
        """Free the device of the lease that `message` is about, if that is out, and return the task that held it."""
        held = self._state.held.get(message.task_id)
        whatever_is_out = message.kind is SettleKind.WITHDRAW and message.lease is None
        if held is None or not (whatever_is_out or (message.lease and message.lease.id == held.lease.id)):
            return None
        del self._state.held[message.task_id]
        device = self._state.devices.get(held.lease.device_key)
        if device is not None and message.end is not None and message.end.lease_id == held.lease.id:
            judge(device, message.end, now)
        device_freed(self._state, held.lease.device_key, now)
        return held.task

    def _enqueue(self, entry: QueueEntry, now: float, before: Waiting | None = None) -> None:
        """Queue a task; one that comes back (`before`) keeps its place."""
        if before is not None:
            sequence, submitted_at = before.sequence, before.submitted_at
        else:
            sequence, submitted_at = (
                self._state.next_sequence,
                now if entry.submitted_at is None else entry.submitted_at,
            )
            self._state.next_sequence += 1
        self._queue.add(
            Waiting(
                task_id=entry.task_id,
                constraints=entry.constraints,
                priority=entry.priority,
                submitted_at=submitted_at,
                sequence=sequence,
                attempts=entry.attempts,
                max_attempts=entry.max_attempts,
                check_at=now + CHECK_AFTER,
                heard_at=now,
                avoids=tuple(key for key in entry.avoids if key in self._state.devices)[-MAX_AVOIDED:],
            )
        )

    def _admission(self, entry: QueueEntry, refused: ErrorBody | None, now: float) -> Admission:
        task, held = self._task(entry.task_id), self._state.held.get(entry.task_id)
        return Admission(
            task_id=entry.task_id,
            submitted_at=task.submitted_at if task else now,
            start_by=now + START_WITHIN,
            max_attempts=entry.max_attempts or self.config.max_attempts,
            lease=held.lease if held and refused is None else None,
            refused=refused,
        )

    def _index(self, tasks: Iterable[Waiting]) -> TaskQueue:
        queue = TaskQueue(self._rank)
        for task in tasks:
            queue.add(task)
        return queue

    def _rank(self, task: Waiting) -> Rank | None:
        try:
            return checked_rank(self._registry.get(self.config.strategy).rank(task))
        except Exception as error:  # noqa: BLE001 - as in assign()
            self._note_problem(error)
            return None

    def _note_problem(self, error: Exception) -> None:
        problem = f"strategy {self.config.strategy!r}: {type(error).__name__}: {error}"
        self._state.problem = problem[:MAX_PROBLEM_LENGTH]

    def _patience(self, task_id: str) -> float:
        """Return how long a task that is alive may be silent: one that waits speaks every now and then."""
        return CHECK_AFTER + (RENEW_PLACE_AFTER if task_id in self._queue else 0.0)

    def _task(self, task_id: str) -> Waiting | None:
        held = self._state.held.get(task_id)
        return held.task if held else self._queue.get(task_id)

    def _tasks(self) -> Iterator[Waiting]:
        yield from self._queue
        yield from (held.task for held in self._state.held.values())

    def _knows(self, task_id: str) -> bool:
        return task_id in self._state.held or task_id in self._queue

"""TaskScheduler: the rules' entry point. Commands come in with the time, decisions go out."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.device import DeviceState, PooledDevice
from toolcrib.scheduling.errors import ErrorBody, QueueFull
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import (
    Admission,
    AskedAfter,
    HostSilent,
    HostSnapshot,
    QueueEntry,
    SettleKind,
    Settlement,
)
from toolcrib.scheduling.pool import Held, PoolState
from toolcrib.scheduling.registration import device_freed, register_host, silence_host
from toolcrib.scheduling.strategies import STRATEGIES, Rank, StrategyRegistry
from toolcrib.scheduling.waiting import MAX_WEIGHT, TaskQueue, Waiting

START_WITHIN: Final = 30.0
"""A client has so many seconds to start the task it had admitted."""
CHECK_AFTER: Final = START_WITHIN + 5.0
"""The pool asks Temporal so long after an admission or a grant whether the task runs."""
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
    def devices(self) -> list[PooledDevice]:
        """The pool's devices, in registration order."""
        return list(self._state.devices.values())

    @property
    def held(self) -> list[Lease]:
        """The leases that are out."""
        return [held.lease for held in self._state.held.values()]

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
        if self._queue.weight_with(entry.task_id, entry.constraints) > MAX_WEIGHT:
            return QueueFull(f"the queue of pool {self._state.name!r} takes more than {MAX_WEIGHT:,} bytes").body
        return None

    def admit(self, entries: Sequence[QueueEntry], now: float) -> list[Admission]:
        """Give each entry a place in the queue, or a device at once, or a refusal.

        A task that is known already gets the same answer again.
        """
        refused: dict[str, ErrorBody] = {}
        for entry in entries:
            if (task := self._task(entry.task_id)) is not None:
                task.heard(now, RENEW_PLACE_AFTER + CHECK_AFTER)
            elif (reason := self.refusal(entry)) is not None:
                refused[entry.task_id] = reason
            else:
                self._enqueue(entry, now)
                self.assign(now)
        for entry in entries:
            self._state.undelivered.pop(entry.task_id, None)
        return [self._admission(entry, refused.get(entry.task_id), now) for entry in entries]

    def settle(self, messages: Iterable[Settlement], now: float) -> None:
        """Take back what tasks give back, and assign it again in the same decision."""
        for message in messages:
            held = self._state.held.get(message.task_id)
            current = held is not None and (message.lease is None or held.lease.id == message.lease.id)
            if current:
                self._free(message.task_id, now)
            if message.kind is SettleKind.WITHDRAW:
                self._queue.remove(message.task_id)
            elif message.kind is SettleKind.REQUEUE and message.entry and not self._knows(message.task_id):
                self._enqueue(message.entry, now, before=held.task if held and current else None)
        self.assign(now)

    def assign(self, now: float) -> list[Lease]:
        """Bind waiting tasks to idle devices that fit, as the strategy says, and return the new leases.

        Each grant is recorded whole: task, attempt, device, deadlines and fencing number. None to make is no error.
        """
        free = {device.key: device for device in self._state.devices.values() if device.assignable}
        if not free or not self.below_cap:
            return []
        grants: list[Lease] = []
        try:
            for task, device in self._matches(free):
                grants.append(self._grant(task, device, now))
            self._state.problem = None
        except Exception as error:  # noqa: BLE001 - a third party's strategy must not take the pool down
            self._state.problem = f"strategy {self.config.strategy!r}: {type(error).__name__}: {error}"
        return grants

    # ---- delivery, and tasks that are gone

    @property
    def undelivered(self) -> list[Lease]:
        """Leases whose tasks have to be told."""
        return list(self._state.undelivered.values())

    def delivered(self, leases: Iterable[Lease]) -> None:
        """Note that these tasks know of their leases."""
        for lease in leases:
            if self._state.undelivered.get(lease.task_id) == lease:
                del self._state.undelivered[lease.task_id]

    @property
    def busy(self) -> bool:
        """Whether any task waits or holds a device."""
        return bool(self._state.held) or len(self._queue) > 0

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
                task.check_at = now + (RENEW_PLACE_AFTER + CHECK_AFTER if task_id in self._queue else CHECK_AFTER)
        taken = [
            task_id for task_id in found.gone if (task := self._task(task_id)) is not None and task.heard_at < asked_at
        ]
        self.settle([Settlement(kind=SettleKind.WITHDRAW, task_id=task_id) for task_id in taken], now)
        return taken

    # ---- hosts and settings

    def register(self, snapshot: HostSnapshot, now: float) -> int:
        """Take in a host with its devices, and return its worker's incarnation.

        Raises:
            InvalidRequest: the pool would have more devices than it can carry.
        """
        incarnation = register_host(self._state, snapshot, now)
        self.assign(now)
        return incarnation

    def silence(self, message: HostSilent, now: float) -> None:
        """Take a host out that no longer heartbeats; leases it has out live until they expire."""
        silence_host(self._state, message, now)

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

    def _matches(self, free: dict[str, PooledDevice]) -> Iterator[tuple[Waiting, PooledDevice]]:
        """Yield whom the strategy gives which of the `free` devices, one at a time."""
        strategy = self._registry.get(self.config.strategy)
        passed_over: dict[Constraints, int] = {}
        heads = [
            (self._queue.place(demand, 0), demand)
            for demand in self._queue.demands()
            if any(demand.matches(device) for device in free.values())
        ]
        heapq.heapify(heads)
        while heads and free and self.below_cap:
            _, demand = heapq.heappop(heads)
            fitting = [device for device in free.values() if demand.matches(device)]
            if not fitting:
                continue
            task = self._queue.at(demand, passed_over.setdefault(demand, 0))
            chosen = strategy.choose(task, fitting)
            if chosen is None:
                passed_over[demand] += 1
            else:
                yield task, free.pop(chosen.key)
            if passed_over[demand] < self._queue.size(demand):
                heapq.heappush(heads, (self._queue.place(demand, passed_over[demand]), demand))

    def _grant(self, task: Waiting, device: PooledDevice, now: float) -> Lease:
        self._queue.remove(task.task_id)
        state = self._state
        state.last_fencing = max(state.last_fencing + 1, int(now * 1000))
        task.attempts += 1
        task.check_at = now + CHECK_AFTER
        lease = Lease(
            task_id=task.task_id,
            attempt=task.attempts,
            host_id=device.host_id,
            device_id=device.device_id,
            fencing=state.last_fencing,
            assigned_at=now,
            claim_by=now + self.config.claim_timeout,
            ttl=self.config.lease_ttl,
        )
        state.held[task.task_id] = Held(lease=lease, task=task)
        state.undelivered[task.task_id] = lease
        device.turn(DeviceState.LEASED, now)
        return lease

    def _free(self, task_id: str, now: float) -> None:
        lease = self._state.held.pop(task_id).lease
        self._state.undelivered.pop(task_id, None)
        device_freed(self._state, lease.device_key, now)

    def _enqueue(self, entry: QueueEntry, now: float, before: Waiting | None = None) -> None:
        """Queue a task; one that comes back (`before`) keeps its place."""
        sequence = before.sequence if before else self._state.next_sequence
        self._state.next_sequence += 0 if before else 1
        submitted_at = entry.submitted_at if entry.submitted_at is not None else now
        self._queue.add(
            Waiting(
                task_id=entry.task_id,
                constraints=entry.constraints,
                priority=entry.priority,
                submitted_at=before.submitted_at if before else submitted_at,
                sequence=sequence,
                attempts=entry.attempts,
                max_attempts=entry.max_attempts,
                check_at=now + CHECK_AFTER,
                heard_at=now,
            )
        )

    def _admission(self, entry: QueueEntry, refused: ErrorBody | None, now: float) -> Admission:
        task, held = self._task(entry.task_id), self._state.held.get(entry.task_id)
        return Admission(
            task_id=entry.task_id,
            submitted_at=task.submitted_at if task else now,
            start_by=now + START_WITHIN,
            max_attempts=entry.max_attempts or self.config.max_attempts,
            lease=held.lease if held else None,
            refused=refused,
        )

    def _index(self, tasks: Iterable[Waiting]) -> TaskQueue:
        queue = TaskQueue(self._rank)
        for task in tasks:
            queue.add(task)
        return queue

    def _rank(self, task: Waiting) -> Rank:
        try:
            return tuple(self._registry.get(self.config.strategy).rank(task))
        except Exception as error:  # noqa: BLE001 - as in assign()
            self._state.problem = f"strategy {self.config.strategy!r}: {type(error).__name__}: {error}"
            return (task.submitted_at,)

    @property
    def below_cap(self) -> bool:
        """Whether the pool may have one more lease out."""
        cap = self.config.max_concurrent
        return cap is None or len(self._state.held) < cap

    def _task(self, task_id: str) -> Waiting | None:
        held = self._state.held.get(task_id)
        return held.task if held else self._queue.get(task_id)

    def _tasks(self) -> Iterator[Waiting]:
        yield from self._queue
        yield from (held.task for held in self._state.held.values())

    def _knows(self, task_id: str) -> bool:
        return task_id in self._state.held or task_id in self._queue

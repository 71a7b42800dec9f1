"""TaskScheduler: the rules' entry point. Commands come in with the time, decisions go out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from toolcrib.scheduling import repair
from toolcrib.scheduling.admission import not_admitted
from toolcrib.scheduling.asking import CHECK_AFTER, START_WITHIN, Inquiry
from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.device import DeviceState, PooledDevice
from toolcrib.scheduling.errors import ErrorBody
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
from toolcrib.scheduling.ranking import Ranking
from toolcrib.scheduling.registration import device_freed, leave_host, register_host, silence_host
from toolcrib.scheduling.service import carry_out, check_order
from toolcrib.scheduling.strategies import STRATEGIES, StrategyRegistry
from toolcrib.scheduling.waiting import TaskQueue, Waiting

MAX_AVOIDED: Final = 5
"""Devices that one task avoids, those that it had last: they are part of the pool's state."""
RENEW_PLACE_AFTER: Final = 600.0
"""A queued task asks again for its place this often, should nobody have asked it to."""


class TaskScheduler:
    """Owns every assignment of one pool. All times are unix seconds and come in as `now`."""

    def __init__(self, state: PoolState, registry: StrategyRegistry = STRATEGIES) -> None:
        self._state = state
        self._registry = registry
        self._ranking = Ranking(state, registry)
        self._queue = self._ranking.queue_of(state.queue)
        self._inquiry = Inquiry(state, self._queue)

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
        """The leases that are out, but for those that their tasks have let go of."""
        return [held.lease for held in self._state.held.values() if held.until is None]

    @property
    def below_cap(self) -> bool:
        """Whether the pool may have one more lease out."""
        return self.config.max_concurrent is None or self._state.out < self.config.max_concurrent

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
        return not_admitted(self._state, self._queue, entry)

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
            if message.kind is SettleKind.RESET:
                self._begin_anew(message, now)
                continue
            before = self._take_back(message, now)
            if message.kind is SettleKind.WITHDRAW:
                self._queue.remove(message.task_id)
            elif message.kind is SettleKind.REQUEUE and message.entry and not self._knows(message.entry.task_id):
                self._queue.add(self._waiting(message.entry, now, before))
        self.assign(now)

    def assign(self, now: float) -> list[Lease]:
        """Bind waiting tasks to idle devices that fit, as the strategy says, and return the new leases.

        Each grant is recorded whole: task, attempt, device, deadlines and fencing number. None to make is no error.
        While the strategy cannot say where each task stands there is no order, and so there are no grants. Devices
        that have rested long enough take part, and those whose last work must have ended; a rebuilt pool opens in time.
        """
        wake(self._state, now)
        self._end(repair.ended_by(self._state, now), now)
        self._queue.wake(now)
        is_open = repair.is_open(self._state, now)
        devices = self._state.devices.values()
        idle = [device for device in devices if device.state is DeviceState.IDLE and self.in_service(device)]
        if not idle or not self.below_cap or self._queue.unranked or not is_open:
            return []
        grants: list[Lease] = []
        try:
            for task, device in matches(self._queue, idle, self.coming, self._ranking.strategy, lambda: self.below_cap):
                grants.append(self._grant(task, device, now))
            self._state.problem = None
        except Exception as error:  # noqa: BLE001 - a third party's strategy must not take the pool down
            self._ranking.failed(error)
        return grants

    # ---- delivery, and tasks that are gone

    @property
    def undelivered(self) -> list[Lease]:
        """Leases whose tasks have to be told."""
        return [held.lease for held in self._state.held.values() if not held.told and held.until is None]

    def delivered(self, leases: Iterable[Lease]) -> None:
        """Note that these tasks know of their leases."""
        for held in map(self._out, leases):
            if held is not None:
                held.told = True

    def missed(self, leases: Iterable[Lease], now: float) -> None:
        """Have tasks asked after soon that could not be told of their leases."""
        for held in map(self._out, leases):
            if held is not None:
                held.task.check_at = min(held.task.check_at, now)

    @property
    def busy(self) -> bool:
        """Whether any task waits or holds a device, or may turn out to."""
        return bool(self._state.held) or len(self._queue) > 0 or self._state.survey_at is not None

    def coming(self) -> Iterator[PooledDevice]:
        """Yield the devices that are free for a task or will be by themselves, in registration order."""
        return (device for device in self._state.devices.values() if self._state.comes_free(device))

    def next_wake(self) -> float | None:
        """Return when `assign` has to be called because a device will be free, a task may go on or the pool opens."""
        opens_at = self._state.opens_at if len(self._queue) > 0 else None
        ends = (next_wake(self._state), repair.next_end(self._state), self._queue.next_due(), opens_at)
        return min((end for end in ends if end is not None), default=None)

    def next_check(self) -> float | None:
        """Return when the pool has to ask after its tasks next."""
        return self._inquiry.due()

    @property
    def surveys(self) -> bool:
        """Whether the pool was rebuilt, and looks for tasks that it does not know."""
        return self._state.survey_at is not None

    @property
    def members(self) -> list[str]:
        """The tasks that the pool knows and has to ask after."""
        return [task.task_id for task in self._inquiry.tasks()]

    def asked_after(self, found: AskedAfter, asked_at: float, now: float) -> dict[str, str]:
        """Take what Temporal said when asked at `asked_at`, and return why tasks were taken back, by task."""
        taken = self._inquiry.answered(found, asked_at, now)
        self.assign(now)
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
        self._end(repair.hear_host(self._state, snapshot, now), now)
        self.assign(now)
        return Registration(incarnation=incarnation, ttl=self.config.lease_ttl)

    def silence(self, message: HostSilent, now: float) -> None:
        """Take a host out that no longer heartbeats; leases it has out live until they expire."""
        if silence_host(self._state, message, now):
            repair.forget_works(self._state, message.host_id, now)
            self.assign(now)

    def leave(self, message: HostLeaves, now: float) -> list[Lease]:
        """Grant nothing more on a host whose worker begins to stop, and return the leases that are out on it.

        An older worker than the host's newest is told of none.
        """
        if not leave_host(self._state, message, now):
            return []
        self.assign(now)  # for those that would rather have had its devices
        return [lease for lease in self.held if lease.host_id == message.host_id]

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
        self._queue = self._ranking.queue_of(waiting)
        self._inquiry = Inquiry(self._state, self._queue)
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
        if (task := self._inquiry.task(entry.task_id)) is not None:
            task.heard(now, CHECK_AFTER)
        elif (ending := self._state.held.get(entry.task_id)) is not None:
            ending.again = self._waiting(entry, now)
        elif entry.lease is not None:
            repair.adopt(self._state, entry.lease, self._waiting(entry, now), now)
        elif (refusal := self.refusal(entry)) is not None:
            return refusal
        else:
            self._queue.add(self._waiting(entry, now))
            self.assign(now)
            if (held := self._state.held.get(entry.task_id)) is not None:
                held.told = True
        return None

    def _take_back(self, message: Settlement, now: float) -> Waiting | None:
        """Free the device of the lease that `message` is about, if that is out, and return the task that held it."""
        held = self._state.held.get(message.task_id)
        whatever_is_out = message.kind is SettleKind.WITHDRAW and message.lease is None
        if held is None or not (whatever_is_out or (message.lease and message.lease.id == held.lease.id)):
            if message.lease is not None and message.lease.task_id == message.task_id:
                repair.lease_over(self._state, message.lease, now)
            return None
        if held.until is not None and whatever_is_out:
            held.again = None
            return None
        device = self._state.devices.get(held.lease.device_key)
        if device is not None and message.end is not None and message.end.lease_id == held.lease.id:
            judge(device, message.end, now)
        self._end([message.task_id], now)
        return held.task

    def _end(self, task_ids: Iterable[str], now: float) -> None:
        """Free the devices that these tasks hold, and queue those again that wait for that."""
        for task_id in task_ids:
            held = self._state.held.pop(task_id)
            repair.lease_over(self._state, held.lease, now)
            device_freed(self._state, held.lease.device_key, now)
            if held.again is not None:
                self._queue.add(held.again)

    def _begin_anew(self, message: Settlement, now: float) -> None:
        """Queue a task that was reset, when the work under the lease that it had must have ended."""
        held = self._state.held.get(message.task_id)
        if held is not None and message.before is not None and held.lease.assigned_at > message.before:
            return
        before = held.task if held is not None else self._queue.remove(message.task_id)
        again = None if message.entry is None else self._waiting(message.entry, now, before)
        if again is not None and message.before is not None:
            again.wait_past(message.before, now)
        if held is not None:
            repair.let_go(self._state, held, f"its task was reset: {message.task_id}", now, again)
        elif again is not None:
            self._queue.add(again)

    def _waiting(self, entry: QueueEntry, now: float, before: Waiting | None = None) -> Waiting:
        """Return a task that is to be queued; one that comes back (`before`) keeps its place."""
        if before is not None:
            sequence, submitted_at = before.sequence, before.submitted_at
        else:
            sequence = self._state.next_sequence
            submitted_at = now if entry.submitted_at is None else entry.submitted_at
            self._state.next_sequence += 1
        kept = tuple(key for key in entry.avoids if key in self._state.devices)[-MAX_AVOIDED:]
        return Waiting.of(
            replace(entry, avoids=kept), sequence=sequence, submitted_at=submitted_at, now=now, check_after=CHECK_AFTER
        )

    def _admission(self, entry: QueueEntry, refused: ErrorBody | None, now: float) -> Admission:
        task, held = self._inquiry.task(entry.task_id), self._state.held.get(entry.task_id)
        is_out = held is not None and held.until is None and refused is None
        return Admission(
            task_id=entry.task_id,
            submitted_at=task.submitted_at if task else now,
            start_by=now + START_WITHIN,
            max_attempts=entry.max_attempts or self.config.max_attempts,
            lease=held.lease if held and is_out else None,
            refused=refused,
        )

    def _out(self, lease: Lease) -> Held | None:
        held = self._state.held.get(lease.task_id)
        return held if held is not None and held.lease == lease else None

    def _knows(self, task_id: str) -> bool:
        return task_id in self._state.held or task_id in self._queue

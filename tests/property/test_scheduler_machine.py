"""Whatever happens to a pool, in whatever order: it decides as its plain model does, and its promises hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from support.pool_model import PoolModel
from support.rules import START, device, entry, key_of, register, settlement, snapshot
from toolcrib.scheduling.asking import CHECK_AFTER
from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.device import DeviceSpec, DeviceState
from toolcrib.scheduling.enrollment import enroll, standing_of
from toolcrib.scheduling.errors import BadSignature, HostSuperseded, NotEnrolled, UnknownDevice
from toolcrib.scheduling.health import QUARANTINE_AFTER, REST
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import (
    AskedAfter,
    DeviceOrder,
    HostKey,
    HostLeaves,
    HostOrder,
    HostSilent,
    HostSnapshot,
    LeaseEnd,
    QueueEntry,
    SettleKind,
    Settlement,
)
from toolcrib.scheduling.pool import PoolState, dump_state, load_state
from toolcrib.scheduling.pool_view import pool_details, pool_view, reasons_for
from toolcrib.scheduling.scheduler import TaskScheduler

TASKS = st.sampled_from([f"t{n}" for n in range(12)])
HOSTS = st.sampled_from(["h1", "h2"])
DEVICES = st.sampled_from(["d1", "d2", "d3"])
TYPES = st.sampled_from(["phone", "slot"])
TAGS = st.lists(st.sampled_from(["a", "b"]), unique=True, max_size=2).map(lambda tags: tuple(sorted(tags)))
FEW = st.integers(0, 5)
KEYS = st.builds("{}/{}".format, HOSTS, DEVICES)
AVOIDED = st.lists(KEYS, max_size=6, unique=True).map(tuple)
ENDS = st.sampled_from([None, True, False, False])
"""What the end of a lease says: nothing, that the device served, or that it failed."""


def mostly_none(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return values of which most are None."""
    return st.integers(0, 4).flatmap(lambda n: values if n == 4 else st.none())


ENTRIES = st.builds(
    lambda task_id, tags, **fields: entry(task_id, *tags, **fields),
    TASKS,
    TAGS,
    driver_type=mostly_none(TYPES),
    device_id=mostly_none(DEVICES),
    host_id=mostly_none(HOSTS),
    workflow=mostly_none(st.sampled_from(["w", "w@1", "w@2", "v"])),
    priority=st.integers(1, 5),
    submitted_at=mostly_none(st.sampled_from([START - 5, START, START + 1])),
    known=st.sampled_from([False, False, True]),
)
PLAIN_ENTRIES = st.builds(entry, TASKS)
SPECS = st.builds(DeviceSpec, id=DEVICES, driver=st.just("local"), driver_type=TYPES, tags=TAGS)
SAID = st.dictionaries(TYPES, st.lists(st.sampled_from(["w@1", "w@2", "v"]), unique=True).map(tuple))
"""What a host says that it runs."""
SNAPSHOTS = st.builds(
    snapshot,
    HOSTS,
    st.lists(SPECS, max_size=3, unique_by=lambda spec: spec.id),
    st.sampled_from(["one", "two"]),
    workflows=SAID,
)
LONGEST_BACKOFF = 60.0
BACKOFFS = st.sampled_from([0.0, 0.0, 1.0, LONGEST_BACKOFF])
CONFIGS = st.fixed_dictionaries(
    {
        "max_concurrent": st.none() | st.integers(1, 4),
        "max_queue_depth": st.integers(1, 6),
        "strategy": st.sampled_from(["fifo_match", "priority_fifo"]),
    }
)


class PoolMachine(RuleBasedStateMachine):
    """One pool beside its model. Messages may be late, repeated or about a lease that is over."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.scheduler = TaskScheduler(
            PoolState(name="default", config=PoolConfig(max_concurrent=2, max_queue_depth=4))
        )
        self.model = PoolModel(cap=2, depth=4)
        self.leases: list[Lease] = []
        self.asked_at = self.now

    @initialize(more=SNAPSHOTS)
    def begin_with_hosts(self, more: HostSnapshot) -> None:
        self.register(snapshot("h2", [device("d1"), device("d2", "a")]))
        self.register(more)

    # ---- commands

    @rule(entries=st.lists(PLAIN_ENTRIES | ENTRIES, min_size=1, max_size=4))
    def admit(self, entries: list[QueueEntry]) -> None:
        answers = self.scheduler.admit(entries, self.now)
        taken = self.model.admit(entries, self.now)
        assert [answer.task_id for answer in answers] == [each.task_id for each in entries]
        assert [answer.refused is None for answer in answers] == taken
        self._decided()
        for answer in answers:
            held = next((lease for lease in self.scheduler.held if lease.task_id == answer.task_id), None)
            assert answer.lease == (held if answer.refused is None else None)
            if answer.refused is None:
                assert answer.submitted_at == self.model.tasks[answer.task_id].submitted_at

    @precondition(lambda self: self.leases)
    @rule(picks=st.lists(st.tuples(FEW, st.sampled_from(SettleKind), TAGS, ENDS), min_size=1, max_size=3))
    def settle(self, picks: list[tuple[int, SettleKind, tuple[str, ...], bool | None]]) -> None:
        self._settle([self._about(self._past(n), kind, end, tags=tags) for n, kind, tags, end in picks])

    @precondition(lambda self: self.scheduler.held)
    @rule(n=FEW, kind=st.sampled_from(SettleKind), end=ENDS, avoids=AVOIDED, twice=st.booleans(), backoff=BACKOFFS)
    def give_back(
        self, n: int, kind: SettleKind, end: bool | None, avoids: tuple[str, ...], twice: bool, backoff: float
    ) -> None:
        lease = self.scheduler.held[n % len(self.scheduler.held)]
        place = self.model.tasks[lease.task_id].submitted_at
        self._settle([self._about(lease, kind, end, avoids=avoids, backoff=backoff)] * (1 + twice))
        if kind in (SettleKind.REQUEUE, SettleKind.RESET):
            assert self.model.tasks[lease.task_id].submitted_at == place

    @precondition(lambda self: self.scheduler.held)
    @rule(n=FEW)
    def fail_once_more(self, n: int) -> None:
        lease = self.scheduler.held[n % len(self.scheduler.held)]
        avoids = (*self.model.tasks[lease.task_id].avoids, lease.device_key)
        self._settle([self._about(lease, SettleKind.REQUEUE, end=False, avoids=avoids)])

    @precondition(lambda self: self.model.tasks)
    @rule(n=FEW, kind=st.sampled_from(SettleKind), end=ENDS, about=FEW)
    def settle_without_a_lease(self, n: int, kind: SettleKind, end: bool | None, about: int) -> None:
        task_id = list(self.model.tasks)[n % len(self.model.tasks)]
        says = None if end is None or not self.leases else LeaseEnd(lease_id=self._past(about).id, served=end)
        self._settle([Settlement(kind=kind, task_id=task_id, end=says)])

    @rule(host=SNAPSHOTS)
    def register(self, host: HostSnapshot) -> None:
        found = register(self.scheduler, host.host_id, host.devices, self.now, host.instance, workflows=host.workflows)
        assert found.incarnation == self.model.register(host, self.now)
        newer = [lease.task_id for lease in self.scheduler.held if lease.incarnation == found.incarnation]
        older = self.scheduler.holders_before(host.host_id, found.incarnation)
        assert all(lease.host_id != host.host_id or lease.task_id in older + newer for lease in self.scheduler.held)
        self._decided()

    @rule(host=SNAPSHOTS, old=st.booleans())
    def register_wrongly(self, host: HostSnapshot, old: bool) -> None:
        """A registration that somebody else signed, or that was good before, changes nothing."""
        before = dump_state(self.scheduler.state)
        known = standing_of(self.scheduler.records, host.host_id)
        said = replace(host, serial=0 if old else known.serial + 1, instance="three")
        key = key_of(host.host_id if old else "somebody")
        with pytest.raises((NotEnrolled, BadSignature, HostSuperseded)):
            self.scheduler.register(key.signed_snapshot(said, "default"), self.now)
        assert dump_state(self.scheduler.state) == before

    @rule(host_id=HOSTS)
    def revoke(self, host_id: str) -> None:
        if host_id in self.model.hosts:
            enroll(self.scheduler.records, HostKey(host_id=host_id, public_key=None), self.now)
            self.model.hosts[host_id].online = self.model.hosts[host_id].enrolled = False
            self.assign()

    @rule(host_id=HOSTS, late=st.integers(0, 3).map(lambda n: n == 0))
    def leave(self, host_id: str, late: bool) -> None:
        host = self.model.hosts.get(host_id)
        message = HostLeaves(host_id=host_id, incarnation=host.incarnation - late if host else 1)
        out = [lease for lease in self.scheduler.held if lease.host_id == host_id]
        assert self.scheduler.leave(message, self.now) == (out if self.model.silence(message, self.now) else [])
        self._decided()

    @rule(key=KEYS, kind=st.sampled_from(["drain", "resume", "resume", "quarantine"]))
    def order_a_device(self, key: str, kind: Any) -> None:
        self._order(DeviceOrder(key=key, kind=kind, reason="its screen is broken"))

    @rule(host_id=HOSTS, kind=st.sampled_from(["drain", "resume", "resume"]))
    def order_a_host(self, host_id: str, kind: Any) -> None:
        self._order(HostOrder(host_id=host_id, kind=kind))

    @rule(host_id=HOSTS, late=st.integers(0, 3).map(lambda n: n == 0))
    def silence(self, host_id: str, late: bool) -> None:
        host = self.model.hosts.get(host_id)
        message = HostSilent(host_id=host_id, incarnation=host.incarnation - late if host else 1, reason="gone")
        self.scheduler.silence(message, self.now)
        self.model.silence(message, self.now)
        self._decided()

    @rule(changes=CONFIGS)
    def configure(self, changes: dict[str, object]) -> None:
        config = self.scheduler.config.changed(changes)
        self.scheduler.configure(config, self.now)
        self.model.cap, self.model.depth = config.max_concurrent, config.max_queue_depth
        self.model.strategy = config.strategy
        self.model.decide(self.now)
        self._decided()

    @rule()
    def assign(self) -> None:
        self.scheduler.assign(self.now)
        self.model.decide(self.now)
        self._decided()

    @rule()
    def decide_twice(self) -> None:
        self.assign()
        assert not self.scheduler.assign(self.now)

    @precondition(lambda self: self.leases)
    @rule(n=FEW)
    def deliver(self, n: int) -> None:
        told, before = self.leases[-1 - n % len(self.leases)], self.scheduler.undelivered
        self.scheduler.delivered([told])
        assert self.scheduler.undelivered == [lease for lease in before if lease != told]

    @rule()
    def put_the_question(self) -> None:
        self.asked_at = self.now

    @rule(gone=st.lists(TASKS, max_size=3, unique=True), missing=st.lists(TASKS, max_size=3, unique=True))
    def hear_of_tasks(self, gone: list[str], missing: list[str]) -> None:
        heard_at = {task_id: task.heard_at for task_id, task in self.model.tasks.items()}
        lost = [task_id for task_id in gone if heard_at.get(task_id, self.now) < self.asked_at]
        never = [task_id for task_id in missing if heard_at.get(task_id, self.now) + CHECK_AFTER <= self.asked_at]
        lost += [task_id for task_id in never if task_id not in lost]
        found = AskedAfter(gone=tuple(gone), missing=tuple(missing))
        assert list(self.scheduler.asked_after(found, self.asked_at, self.now)) == lost
        self.model.lose(lost, self.now)
        self._decided()

    @rule(seconds=st.sampled_from([0.0, 0.0001, 1.0, REST, 40.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def go_on_in_a_new_run(self) -> None:
        state = self.scheduler.state
        again = load_state(dump_state(state))
        assert again == state
        self.scheduler = TaskScheduler(again)

    # ---- what always holds

    @invariant()
    def it_decides_as_the_model(self) -> None:
        """The same tasks wait in the same order, and the same ones hold the same devices; nothing is lost."""
        assert {lease.task_id: lease.device_key for lease in self.scheduler.held} == self.model.held
        assert [task.task_id for task in self.scheduler.queue.in_order()] == self.model.queued
        assert [device.key for device in self.scheduler.devices] == list(self.model.devices)

    @invariant()
    def a_device_has_one_state(self) -> None:
        """Leased are the devices that have a holder, and only those; the others are as they should be."""
        keys = [lease.device_key for lease in self.scheduler.held]
        states = {device.key: device.state for device in self.scheduler.devices}
        assert sorted(keys) == sorted(key for key, state in states.items() if state is DeviceState.LEASED)
        assert states == {key: self.model.state(key) for key in self.model.devices}

    @invariant()
    def a_device_that_fails_rests_and_is_then_quarantined(self) -> None:
        """Failures in a row are counted; at the limit nobody gets the device, and it always says why."""
        for one in self.scheduler.devices:
            assert one.failures == self.model.devices[one.key].failures
            assert one.failures < QUARANTINE_AFTER or one.quarantine is not None
            assert (one.quarantine is not None) == self.model.devices[one.key].quarantined
            if one.state in (DeviceState.RESTING, DeviceState.QUARANTINED, DeviceState.OFFLINE):
                assert one.reason

    @invariant()
    def it_wakes_devices_in_time(self) -> None:
        """As long as a device rests, or a task backs off, it is known when that will be over, which is soon."""
        wake = self.scheduler.next_wake()
        rests = any(self.model.state(key) in ("resting", "releasing") for key in self.model.devices)
        assert (wake is not None) == (rests or self.model.due != self.model.queued)
        assert wake is None or wake <= self.now + max(REST * (QUARANTINE_AFTER - 1), LONGEST_BACKOFF)

    @invariant()
    def no_device_idles_while_a_task_could_have_it(self) -> None:
        """Below the cap, no task that waits fits a device that is idle, unless it failed there and can go elsewhere."""
        if self.scheduler.below_cap:
            fitting = [(t, key) for t in self.model.due for key in self.model.idle if self.model.fits(t, key)]
            assert all(self.model.avoids(task_id, key) for task_id, key in fitting)
        assert not [r for r in reasons_for(self.scheduler, self.model.queued).values() if r.code == "in_line"]

    @invariant()
    def its_books_are_right(self) -> None:
        """The weight of the queue is that of its entries and demands; what is to be delivered is held."""
        awake = dict.fromkeys(task.constraints for task in self.scheduler.queue if not task.not_before)
        demands = [*awake, *(task.constraints for task in self.scheduler.queue if task.not_before)]
        texts = [text for d in demands for text in (d.driver_type, d.device_id, d.host_id, d.workflow, *d.tags) if text]
        avoided = [key for task_id in self.model.queued for key in self.model.tasks[task_id].avoids]
        weight = sum(20 + len(task_id) for task_id in self.model.queued) + sum(map(len, (*texts, *avoided)))
        assert self.scheduler.queue.weight == weight
        assert not self.scheduler.queue.unranked
        assert self.scheduler.problem is None
        assert set(self.scheduler.undelivered) <= set(self.scheduler.held)

    @invariant()
    def it_asks_after_every_task_in_time(self) -> None:
        """A task that falls silent is asked after, however it got where it is."""
        due = self.scheduler.next_check()
        assert (due is not None) == bool(self.model.tasks)
        assert due is None or due <= self.now + CHECK_AFTER
        assert self.scheduler.busy == bool(self.model.tasks or self.model.ending)
        assert sorted(self.scheduler.members) == sorted(self.model.tasks)

    @invariant()
    def it_can_be_shown(self) -> None:
        """What is shown agrees with what is."""
        view = pool_view(self.scheduler)
        assert {device.task_id: device.key for device in view.devices if device.state == "leased"} == self.model.held
        assert view.leased == len(self.model.held) + len(self.model.ending)
        assert [place.id for place in view.queue] == self.model.queued
        assert pool_details(self.scheduler).startswith("**Pool default**\n")

    # ---- how it is done

    def _past(self, n: int) -> Lease:
        return self.leases[-1 - n % len(self.leases)]

    def _about(
        self, lease: Lease, kind: SettleKind, end: bool | None, *, tags: tuple[str, ...] = (), **fields: Any
    ) -> Settlement:
        place = {"submitted_at": lease.assigned_at, "attempts": lease.attempt, "known": True}
        again = entry(lease.task_id, *tags, **place, **fields)
        says = None if end is None else LeaseEnd(lease_id=lease.id, served=end, reason="it lapsed")
        if kind is SettleKind.RESET:
            return Settlement(kind=kind, task_id=lease.task_id, before=self.now, entry=again)
        return settlement(kind, lease, again if kind is SettleKind.REQUEUE else None, says)

    def _order(self, order: DeviceOrder | HostOrder) -> None:
        before = dump_state(self.scheduler.state)
        if self.model.order(order, self.now):
            self.scheduler.check_order(order)
            self.scheduler.order(order, self.now)
            self._decided()
            return
        with pytest.raises(UnknownDevice):
            self.scheduler.check_order(order)
        with pytest.raises(UnknownDevice):
            self.scheduler.order(order, self.now)
        assert dump_state(self.scheduler.state) == before

    def _settle(self, messages: list[Settlement]) -> None:
        self.scheduler.settle(messages, self.now)
        self.model.settle(messages, self.now)
        self._decided()

    def _decided(self) -> None:
        """Check the leases that are new: the cap was kept, and their numbers are right."""
        fresh = sorted((each for each in self.scheduler.held if each not in self.leases), key=lambda each: each.fencing)
        cap = self.scheduler.config.max_concurrent
        assert not fresh or cap is None or len(self.model.held) + len(self.model.ending) <= cap
        for lease in fresh:
            assert lease.fencing > max((before.fencing for before in self.leases), default=0)
            assert lease.fencing >= int(self.now * 1000)
            assert lease.claim_by == self.now + self.scheduler.config.claim_timeout
            assert self.model.in_service(lease.device_key)
            assert self.model.comes_free(lease.device_key)
            self.leases.append(lease)
        for lease in self.scheduler.held:
            self.model.tasks[lease.task_id].lease_id = lease.id


TestPool = PoolMachine.TestCase

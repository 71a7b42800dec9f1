"""Operators take devices and hosts out of service, and let tasks have them again."""

from __future__ import annotations

import pytest

from support.rules import START, device, entry, holders, pool, queued, register, served
from toolcrib.scheduling.device import DeviceState
from toolcrib.scheduling.errors import InvalidRequest, UnknownDevice
from toolcrib.scheduling.health import MAX_REASON_LENGTH
from toolcrib.scheduling.messages import DeviceOrder, HostLeaves, HostOrder, HostSilent
from toolcrib.scheduling.pool import dump_state
from toolcrib.scheduling.pool_view import pool_details, pool_view, reasons_for
from toolcrib.scheduling.scheduler import TaskScheduler

DRAIN, RESUME = DeviceOrder(key="h/d1", kind="drain"), DeviceOrder(key="h/d1", kind="resume")
QUARANTINE = DeviceOrder(key="h/d1", kind="quarantine", reason="its screen is broken")
DRAIN_HOST, RESUME_HOST = HostOrder(host_id="h", kind="drain"), HostOrder(host_id="h", kind="resume")


def busy() -> TaskScheduler:
    """Return a pool with one device, which `t1` holds and `t2` waits for."""
    scheduler = pool(device("d1"))
    scheduler.admit([entry("t1"), entry("t2")], START)
    return scheduler


def finished(scheduler: TaskScheduler) -> TaskScheduler:
    """Let the work that runs end."""
    scheduler.settle([served(lease) for lease in scheduler.held], START + 1)
    return scheduler


@pytest.mark.parametrize(
    ("order", "code"), [(DRAIN, "out_of_service"), (DRAIN_HOST, "out_of_service"), (QUARANTINE, "quarantined")], ids=str
)
def test_who_holds_a_device_may_finish_and_nobody_else_gets_it(order: DeviceOrder | HostOrder, code: str) -> None:
    """The lease stays as it is; the task that waits is told why, and gets the device when it is resumed."""
    scheduler = busy()
    scheduler.order(order, START)
    assert holders(scheduler) == {"t1": "d1"}
    assert reasons_for(scheduler, ["t2"])["t2"].code == code
    assert finished(scheduler).assign(START + 1e6) == []
    assert reasons_for(scheduler, ["t2"])["t2"].code == code
    scheduler.order(RESUME_HOST if isinstance(order, HostOrder) else RESUME, START + 2)
    assert holders(scheduler) == {"t2": "d1"}


@pytest.mark.parametrize("order", [DRAIN, QUARANTINE, DRAIN_HOST, RESUME, RESUME_HOST], ids=str)
def test_an_order_that_comes_twice_changes_nothing(order: DeviceOrder | HostOrder) -> None:
    """Orders say how it shall be, not what to change."""
    scheduler = busy()
    scheduler.order(order, START)
    once = dump_state(scheduler.state)
    scheduler.order(order, START)
    assert dump_state(scheduler.state) == once


def test_the_work_of_a_host_and_its_devices_are_shown_as_they_are() -> None:
    """A host is draining while something runs on it; its devices are out of service with it, and say so."""
    scheduler = busy()
    scheduler.order(DRAIN_HOST, START)
    (host,) = pool_view(scheduler).hosts
    assert (host.state, host.in_service) == ("draining", False)
    (host,) = pool_view(finished(scheduler)).hosts
    (shown,) = pool_view(scheduler).devices
    assert (host.state, host.in_service) == ("online", False)
    assert (shown.state, shown.in_service, shown.reason) == ("idle", False, "its host is out of service")
    assert "idle        its host is out of service" in pool_details(scheduler)


def test_a_device_that_is_out_of_service_stays_so_when_its_host_comes_back() -> None:
    """What was said of the device and what was said of its host are two things."""
    scheduler = pool(device("d1"), device("d2"))
    for order in (DRAIN, DRAIN_HOST, RESUME_HOST):
        scheduler.order(order, START)
    assert [view.in_service for view in pool_view(scheduler).devices] == [False, True]
    assert "idle        out of service" in pool_details(scheduler)
    register(scheduler, "h", [device("d1"), device("d2")], START, "two")
    scheduler.admit([entry("t1"), entry("t2")], START)
    assert holders(scheduler) == {"t1": "d2"}


def test_a_host_out_of_service_stays_so_over_restarts_of_its_worker() -> None:
    """Only its operator resumes it."""
    scheduler = pool(device("d1"))
    scheduler.order(DRAIN_HOST, START)
    register(scheduler, "h", [device("d1")], START, "two")
    scheduler.admit([entry("t1")], START)
    assert queued(scheduler) == ["t1"]


def test_a_quarantine_says_why() -> None:
    """At once if nobody holds the device, whether it is idle, rests or is offline."""
    scheduler = pool(device("d1"))
    scheduler.silence(HostSilent(host_id="h", incarnation=1, reason="no heartbeat"), START)
    scheduler.order(QUARANTINE, START + 1)
    (found,) = scheduler.devices
    assert (found.state, found.reason, found.since) == (DeviceState.QUARANTINED, "its screen is broken", START + 1)
    scheduler.order(RESUME, START + 2)
    assert (found.state, found.reason) == (DeviceState.OFFLINE, "no heartbeat")


def test_another_reason_replaces_the_first() -> None:
    """The last person who looked knows best."""
    scheduler = pool(device("d1"))
    for reason in ("its screen is broken", " it went\nto the repair shop "):
        scheduler.order(DeviceOrder(key="h/d1", kind="quarantine", reason=reason), START)
    assert scheduler.devices[0].reason == "it went to the repair shop"


@pytest.mark.parametrize("reason", [None, "", " \n", "\x1b[31m", "\ud800", "x" * (MAX_REASON_LENGTH + 1)], ids=ascii)
def test_a_reason_that_cannot_be_kept_is_refused(reason: str | None) -> None:
    """The message names the field, and the limit if it is that."""
    scheduler = pool(device("d1"))
    with pytest.raises(InvalidRequest, match=r"^reason: "):
        scheduler.check_order(DeviceOrder(key="h/d1", kind="quarantine", reason=reason))
    assert scheduler.devices[0].state is DeviceState.IDLE


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (DeviceOrder(key="h/d11", kind="drain"), "pool 'default' has no device 'h/d11'; did you mean h/d1?"),
        (DeviceOrder(key="zzz", kind="quarantine"), "pool 'default' has no device 'zzz'"),
        (HostOrder(host_id="hh", kind="resume"), "pool 'default' has no host 'hh'; did you mean h?"),
    ],
    ids=str,
)
def test_what_is_not_there_is_named_beside_what_looks_like_it(order: DeviceOrder | HostOrder, message: str) -> None:
    """The error has what was asked for and where to look; its exit code is that of things that are not there."""
    with pytest.raises(UnknownDevice) as caught:
        pool(device("d1")).check_order(order)
    what = "host" if isinstance(order, HostOrder) else "device"
    assert caught.value.message == message
    assert (caught.value.hint, caught.value.exit_code) == (f"See: toolcrib {what} list --pool default", 8)


def test_a_host_that_leaves_gets_nothing_more() -> None:
    """Its idle devices are offline at once; what runs on it may finish; the leases that are out are named."""
    scheduler = pool(device("d1"), device("d2"))
    scheduler.admit([entry("t1")], START)
    out = scheduler.leave(HostLeaves(host_id="h", incarnation=1), START + 1)
    scheduler.admit([entry("t2")], START + 2)
    assert [lease.task_id for lease in out] == ["t1"]
    assert reasons_for(scheduler, ["t2"])["t2"].text == "each of the 2 devices that fit is offline"
    view = pool_view(finished(scheduler))
    assert [(one.state, one.reason) for one in view.devices] == [("offline", "its host is draining")] * 2
    assert [(host.state, host.in_service) for host in view.hosts] == [("draining", True)]
    assert reasons_for(scheduler, ["t2"])["t2"].code == "offline"
    scheduler.silence(HostSilent(host_id="h", incarnation=1, reason="its worker stopped"), START + 3)
    assert [host.state for host in pool_view(scheduler).hosts] == ["offline"]
    assert scheduler.devices[0].reason == "its worker stopped"


def test_an_older_worker_that_leaves_does_not_stop_the_newer_one() -> None:
    """A worker was started before the one it replaces had ended: that one is told of no lease."""
    scheduler = busy()
    register(scheduler, "h", [device("d1")], START, "two")
    assert scheduler.leave(HostLeaves(host_id="h", incarnation=1), START) == []
    assert scheduler.leave(HostLeaves(host_id="elsewhere", incarnation=1), START) == []
    assert holders(finished(scheduler)) == {"t2": "d1"}


def test_a_host_that_has_gone_does_not_come_back_by_leaving() -> None:
    """It is offline already, and stays so; a worker that registers brings it back."""
    scheduler = busy()
    scheduler.silence(HostSilent(host_id="h", incarnation=1, reason="no heartbeat"), START)
    assert len(scheduler.leave(HostLeaves(host_id="h", incarnation=1), START)) == 1
    assert [host.state for host in pool_view(finished(scheduler)).hosts] == ["offline"]
    register(scheduler, "h", [device("d1")], START, "two")
    assert holders(scheduler) == {"t2": "d1"}

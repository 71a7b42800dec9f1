"""A task whose lease lapsed is tried elsewhere, if there is an elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.rules import START, device, entry, holders, lapsed, lease, pool, register, report, served, task
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import DeviceOrder, HostLeaves, HostOrder, HostSilent, ReportOutcome
from toolcrib.scheduling.pool import dump_state, load_state
from toolcrib.scheduling.pool_view import reasons_for
from toolcrib.scheduling.scheduler import MAX_AVOIDED, TaskScheduler

LATER = START + 100
"""When every device has rested."""


def lease_of(scheduler: TaskScheduler, task_id: str) -> Lease:
    """Return the lease that a task has."""
    return next(lease for lease in scheduler.held if lease.task_id == task_id)


def two_devices() -> TaskScheduler:
    """Return a pool in which `t` failed on `d1`, which has rested since, while `other` holds `d2`."""
    scheduler = pool(device("d1"), device("d2"))
    scheduler.admit([entry("t"), entry("other")], START)
    scheduler.settle([lapsed(lease_of(scheduler, "t"))], START)
    scheduler.assign(LATER)
    return scheduler


def test_it_waits_for_another_device() -> None:
    """The device on which it failed idles meanwhile; the next that comes free is its own, before those behind it."""
    scheduler = two_devices()
    assert holders(scheduler) == {"other": "d2"}
    scheduler.admit([entry("behind", device_id="d2")], LATER)
    scheduler.settle([served(lease_of(scheduler, "other"))], LATER)
    assert holders(scheduler) == {"t": "d2"}


def test_it_blocks_nobody() -> None:
    """A task behind it that asks for the same gets the device that it avoids."""
    scheduler = two_devices()
    scheduler.admit([entry("behind")], LATER)
    assert holders(scheduler) == {"other": "d2", "behind": "d1"}


def test_it_says_why_it_waits() -> None:
    """The reason is the other device; the one that it avoids is named."""
    reason = reasons_for(two_devices(), ["t"])["t"]
    assert reason.code == "all_busy"
    assert reason.text == "the one device that fits is busy; it avoids h/d1, where its lease lapsed"


@pytest.mark.parametrize(
    "order",
    [
        DeviceOrder(key="h/d2", kind="drain"),
        DeviceOrder(key="h/d2", kind="quarantine", reason="cable"),
        HostOrder(host_id="h2", kind="drain"),
        HostLeaves(host_id="h2", incarnation=1),
        HostSilent(host_id="h2", incarnation=1, reason="gone"),
    ],
    ids=str,
)
def test_where_there_is_no_elsewhere_the_same_device_will_do(
    order: DeviceOrder | HostOrder | HostLeaves | HostSilent,
) -> None:
    """A device that does not come free by itself is none to wait for, from the moment that this is known."""
    scheduler = pool(device("d1"))
    register(scheduler, "h2", [device("d2")], START)
    scheduler.admit([entry("t"), entry("other")], START)
    scheduler.settle([lapsed(lease_of(scheduler, "t"))], START)
    scheduler.assign(LATER)
    assert "t" not in holders(scheduler)
    if isinstance(order, HostSilent):
        scheduler.silence(order, LATER)
    elif isinstance(order, HostLeaves):
        scheduler.leave(order, LATER)
    else:
        key = order if isinstance(order, HostOrder) else replace(order, key="h2/d2")
        scheduler.order(key, LATER)
    assert holders(scheduler)["t"] == "d1"


def test_a_device_that_does_not_fit_is_no_elsewhere() -> None:
    """With one device that has its tag, it gets that again."""
    scheduler = pool(device("d1", "a"), device("d2"))
    scheduler.admit([entry("t", "a")], START)
    scheduler.settle([lapsed(lease_of(scheduler, "t"), "a")], START)
    scheduler.assign(LATER)
    assert holders(scheduler) == {"t": "d1"}


def test_who_failed_everywhere_gets_any() -> None:
    """The first that is idle, as at the beginning."""
    scheduler = pool(device("d1"), device("d2"))
    scheduler.admit([entry("t")], START)
    scheduler.settle([lapsed(lease_of(scheduler, "t"))], START)
    assert holders(scheduler) == {"t": "d2"}
    scheduler.settle([lapsed(lease_of(scheduler, "t"), avoids=("h/d1",))], START)
    scheduler.assign(LATER)
    assert holders(scheduler) == {"t": "d1"}


def test_another_host_is_better_than_another_device_of_the_same() -> None:
    """That a host has died is known somewhat later than that its lease was not renewed."""
    scheduler = pool(device("d1"), device("d2"))
    register(scheduler, "h2", [device("d3")], START)
    scheduler.admit([entry("t"), entry("t2")], START)
    scheduler.settle([lapsed(lease_of(scheduler, "t")), served(lease_of(scheduler, "t2"))], START)
    assert holders(scheduler) == {"t": "d3"}


def test_what_it_avoids_survives_a_restart_of_the_pool() -> None:
    """It is part of the state that is carried over."""
    scheduler = TaskScheduler(load_state(dump_state(two_devices().state)))
    assert not scheduler.assign(LATER)


def test_it_avoids_few_devices_and_only_such_as_there_are() -> None:
    """Whatever a task says, its place in the queue takes little room."""
    scheduler = pool(*(device(f"d{n}") for n in range(9)))
    keys = ["x" * 10_000, *(f"h/d{n}" for n in range(9)), "elsewhere/d"]
    scheduler.admit([entry("t", "no-such-tag", avoids=tuple(keys))], START)
    (waits,) = scheduler.queue
    assert waits.avoids == tuple(f"h/d{n}" for n in range(9 - MAX_AVOIDED, 9))


def test_a_task_names_the_devices_on_which_its_leases_lapsed() -> None:
    """Each once; not those that it gave back."""
    record = task(max_attempts=9)
    for attempt, (device_id, lapses) in enumerate([("d1", True), ("d2", False), ("d1", True), ("d3", True)], 1):
        offered = lease(attempt, device_id=device_id)
        record.offer(offered, START)
        if lapses:
            record.expire("it was not claimed in time", START)
        else:
            record.report(report(offered, ReportOutcome.RETURNED), START)
    assert record.entry(known=True).avoids == ("h/d1", "h/d3")

"""Devices that fail rest, longer each time, and then wait for a person."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.rules import START, device, entry, holders, lapsed, pool, register, served, settlement
from toolcrib.scheduling.device import DeviceState, PooledDevice
from toolcrib.scheduling.health import MAX_REASON_LENGTH
from toolcrib.scheduling.messages import DeviceOrder, HostSilent, LeaseEnd, SettleKind
from toolcrib.scheduling.pool_view import pool_view
from toolcrib.scheduling.scheduler import TaskScheduler

RESUME = DeviceOrder(key="h/d", kind="resume")


def one_device() -> TaskScheduler:
    """Return a pool with one device, which task `t` holds."""
    scheduler = pool(device("d"))
    scheduler.admit([entry("t")], START)
    return scheduler


def only(scheduler: TaskScheduler) -> PooledDevice:
    """Return the pool's one device."""
    (found,) = scheduler.devices
    return found


def failed(scheduler: TaskScheduler, times: int, now: float = START) -> float:
    """Let the lease that is out lapse so many times, each time as soon as there is one, and return when it was last."""
    for number in range(times):
        now = (only(scheduler).rests_until or now) if number else now
        scheduler.assign(now)
        scheduler.settle([lapsed(scheduler.held[0])], now)
    return now


def test_a_device_whose_lease_lapsed_rests() -> None:
    """For ten seconds nobody gets it, and it says why and until when; then the task that waits has it again."""
    scheduler = one_device()
    scheduler.settle([lapsed(scheduler.held[0])], START + 5)
    assert not scheduler.held
    (view,) = pool_view(scheduler).devices
    assert view.state == "resting"
    assert view.reason == "failed once: the host stopped renewing it; rests until 1970-01-12T13:46:55Z"
    assert scheduler.next_wake() == START + 15
    assert not scheduler.assign(START + 14.9)
    assert [lease.attempt for lease in scheduler.assign(START + 15)] == [2]
    assert (scheduler.next_wake(), only(scheduler).reason) == (None, None)


def test_it_rests_longer_the_second_time() -> None:
    """Ten seconds for each failure in a row."""
    scheduler = one_device()
    now = failed(scheduler, 2)
    assert now == START + 10
    assert scheduler.next_wake() == now + 20


def test_after_three_failures_in_a_row_it_is_quarantined() -> None:
    """No time ends that, and no restart of its host; a person does, and the count begins anew."""
    scheduler = one_device()
    now = failed(scheduler, 3)
    assert (only(scheduler).state, scheduler.next_wake()) == (DeviceState.QUARANTINED, None)
    assert only(scheduler).reason == "failed 3 times in a row: the host stopped renewing it"
    register(scheduler, "h", [device("d")], now + 1, "two")
    assert not scheduler.assign(now + 1e6)
    scheduler.order(RESUME, now + 1e6)
    assert holders(scheduler) == {"t": "d"}
    scheduler.settle([lapsed(scheduler.held[0])], now + 1e6)
    assert only(scheduler).state is DeviceState.RESTING


def test_success_resets_the_count() -> None:
    """Two failures, a task that ended, and two failures more: it rests."""
    scheduler = one_device()
    now = failed(scheduler, 2) + 20
    scheduler.assign(now)
    scheduler.settle([served(scheduler.held[0])], now)
    assert (only(scheduler).failures, only(scheduler).fault) == (0, None)
    scheduler.admit([entry("t2")], now)
    failed(scheduler, 2, now)
    assert only(scheduler).state is DeviceState.RESTING


@pytest.mark.parametrize("kind", [SettleKind.RELEASE, SettleKind.RETURN, SettleKind.WITHDRAW])
def test_a_lease_that_was_given_back_says_nothing(kind: SettleKind) -> None:
    """It neither counts as a failure nor as a success."""
    scheduler = one_device()
    now = failed(scheduler, 2) + 20
    scheduler.assign(now)
    scheduler.settle([settlement(kind, scheduler.held[0])], now)
    assert (only(scheduler).state, only(scheduler).failures) == (DeviceState.IDLE, 2)


def test_a_message_that_comes_twice_counts_once() -> None:
    """Also if the same task holds the same device again by then."""
    scheduler = one_device()
    message = lapsed(scheduler.held[0])
    scheduler.settle([message, message], START)
    scheduler.assign(START + 10)
    scheduler.settle([message], START + 10)
    assert (holders(scheduler), only(scheduler).failures) == ({"t": "d"}, 1)


def test_what_is_said_of_another_lease_does_not_count() -> None:
    """A task that is withdrawn frees whatever it holds, but what it says is about the lease that it names."""
    scheduler = one_device()
    about = LeaseEnd(lease_id="t.7.7", served=False, reason="it lapsed")
    withdrawal = settlement(SettleKind.WITHDRAW, scheduler.held[0], end=about)
    scheduler.settle([replace(withdrawal, lease=None)], START)
    assert (only(scheduler).state, only(scheduler).failures) == (DeviceState.IDLE, 0)


def test_s35_a_device_of_a_dead_host_is_not_given_away_after_its_rest() -> None:
    """It rests, and is then offline as long as its host is."""
    scheduler = one_device()
    scheduler.settle([lapsed(scheduler.held[0])], START)
    scheduler.silence(HostSilent(host_id="h", incarnation=1, reason="no heartbeat"), START + 1)
    assert only(scheduler).state is DeviceState.RESTING
    assert not scheduler.assign(START + 10)
    assert (only(scheduler).state, only(scheduler).reason) == (DeviceState.OFFLINE, "no heartbeat")
    register(scheduler, "h", [device("d")], START + 11, "two")
    assert holders(scheduler) == {"t": "d"}


def test_a_device_that_is_gone_from_its_file_is_not_kept_for_its_failure() -> None:
    """When its lease lapses it goes as any other."""
    scheduler = one_device()
    register(scheduler, "h", [], START, "two")
    scheduler.settle([lapsed(scheduler.held[0])], START)
    assert not scheduler.devices


def test_a_reason_of_any_length_and_shape_is_kept_short() -> None:
    """A host that fails with pages of text does not fill the pool's state, nor break the lines that show it."""
    scheduler = one_device()
    end = LeaseEnd(lease_id=scheduler.held[0].id, served=False, reason="the host failed:\n" + "x" * 10_000)
    scheduler.settle([settlement(SettleKind.RELEASE, scheduler.held[0], end=end)], START)
    assert only(scheduler).reason == ("failed once: the host failed: " + "x" * 100)[:MAX_REASON_LENGTH]

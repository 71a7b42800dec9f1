"""A task whose lease lapsed waits a little before it is tried again, longer each time, and keeps its place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.rules import (
    START,
    assigned,
    claim,
    device,
    dispatched,
    entry,
    holders,
    lapsed,
    pool,
    queued,
    report,
    task,
    waiting,
)
from toolcrib.scheduling import repair
from toolcrib.scheduling.messages import ReportOutcome, SettleKind, Settlement
from toolcrib.scheduling.pool import dump_state, load_state
from toolcrib.scheduling.pool_view import reasons_for
from toolcrib.scheduling.retry_policy import RetryPolicy
from toolcrib.scheduling.scheduler import TaskScheduler


@pytest.mark.parametrize(("failures", "interval"), [(1, 1.0), (2, 2.0), (3, 4.0), (6, 32.0), (7, 60.0), (10**6, 60.0)])
def test_the_interval_doubles_up_to_its_maximum(failures: int, interval: float) -> None:
    """As Temporal's own retry policy has it."""
    assert RetryPolicy(maximum_attempts=3).interval_after(failures) == interval


def test_each_lapse_makes_a_task_wait_longer() -> None:
    """What was given back unused does not, and is not counted in between."""
    record = task(max_attempts=9)
    waits = []
    for returned in (False, True, False, False):
        offered = assigned(record)
        if returned:
            record.report(report(offered, ReportOutcome.RETURNED), START)
        else:
            record.claim(claim(offered), START)
            record.expire("the host stopped renewing it", START)
        told = record.settlement()
        assert told.entry is not None
        waits.append(told.entry.backoff)
    assert waits == [1.0, 0.0, 2.0, 4.0]


def test_an_end_has_no_backoff() -> None:
    """There is no entry to carry it."""
    record = task(max_attempts=1)
    dispatched(record)
    record.expire("the host stopped renewing it", START)
    assert record.settlement().entry is None


def backing_off(seconds: float = 5.0) -> TaskScheduler:
    """Return a pool with two devices of which one is idle, and whose first task backs off; another waits behind it."""
    scheduler = pool(device("d1"), device("d2"), device("d3"))
    scheduler.admit([entry("t1"), entry("t2"), entry("t3"), entry("t4")], START)
    first = next(held for held in scheduler.held if held.task_id == "t1")
    told = lapsed(first)
    assert told.entry is not None
    scheduler.settle([replace(told, entry=replace(told.entry, backoff=seconds, avoids=()), end=None)], START + 1)
    return scheduler


def test_meanwhile_its_device_serves_others_and_it_says_why_it_waits() -> None:
    """It still stands before those that came later."""
    scheduler = backing_off()
    assert holders(scheduler) == {"t2": "d2", "t3": "d3", "t4": "d1"}
    scheduler.admit([entry("t5", device_id="d9")], START + 2)
    assert queued(scheduler) == ["t1", "t5"]
    reason = reasons_for(scheduler, ["t1"])["t1"]
    assert reason.code == "backoff"
    assert reason.text == "its last attempt came to nothing; it is tried again from 1970-01-12T13:46:46Z on"


def test_it_is_tried_again_when_its_time_has_come() -> None:
    """Not earlier, though its device idles; the pool knows when to look."""
    scheduler = pool(device("d"))
    scheduler.admit([entry("t1")], START)
    told = lapsed(scheduler.held[0])
    assert told.entry is not None
    scheduler.settle([replace(told, entry=replace(told.entry, backoff=5.0), end=None)], START)
    assert (holders(scheduler), scheduler.next_wake()) == ({}, START + 5)
    assert scheduler.assign(START + 4.9) == []
    assert len(scheduler.assign(START + 5)) == 1
    assert scheduler.next_wake() is None


def test_it_may_leave_the_queue_meanwhile() -> None:
    """Nothing of it stays behind."""
    scheduler = backing_off()
    scheduler.settle([Settlement(kind=SettleKind.WITHDRAW, task_id="t1")], START + 2)
    assert queued(scheduler) == []
    assert scheduler.queue.weight == 0
    assert scheduler.next_wake() is None


def test_it_goes_on_in_a_new_run_of_the_pool() -> None:
    """With the time that it has left."""
    scheduler = backing_off()
    again = TaskScheduler(load_state(dump_state(scheduler.state)))
    assert queued(again) == ["t1"]
    assert again.next_wake() == START + 6


def test_what_comes_back_to_the_queue_late_stands_before_others_at_once() -> None:
    """A task whose time came while its last device was still kept from it goes before those behind it."""
    scheduler = pool(device("d"))
    scheduler.admit([entry("t1"), entry("t2")], START)
    held = scheduler.records.held["t1"]
    again = waiting("t1", held.task.sequence, not_before=START + 1)
    repair.let_go(scheduler.records, held, "its task was reset: t1", START, again)
    scheduler.assign(START + held.lease.ttl)
    assert holders(scheduler) == {"t1": "d"}
    assert scheduler.next_wake() is None

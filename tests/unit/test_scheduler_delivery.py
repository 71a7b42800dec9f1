"""Which tasks have to be told of their leases, and which are asked after because they fell silent."""

from __future__ import annotations

import pytest

from support.rules import START, again, busy_pool, device, entry, holders, pool, queued, settlement
from toolcrib.scheduling.messages import AskedAfter, SettleKind
from toolcrib.scheduling.scheduler import CHECK_AFTER, RENEW_PLACE_AFTER, TaskScheduler


@pytest.fixture
def scheduler() -> TaskScheduler:
    """One device, which `t1` holds; `t2` and `t3` wait."""
    return busy_pool()


def test_the_answer_to_an_admission_delivers_its_lease() -> None:
    """Nothing else has to be sent; a lease that comes later has to be."""
    scheduler = pool(device("d"))
    scheduler.admit([entry("t1"), entry("t2")], START)
    assert not scheduler.undelivered
    scheduler.settle([settlement(SettleKind.RELEASE, scheduler.held[0])], START)
    assert [lease.task_id for lease in scheduler.undelivered] == ["t2"]


def test_a_late_admission_does_not_deliver() -> None:
    """Its asker may have given up on the answer: the lease is sent all the same, twice does no harm."""
    scheduler = pool(device("d"))
    scheduler.admit([entry("t1"), entry("t2")], START)
    scheduler.settle([settlement(SettleKind.RELEASE, scheduler.held[0])], START)
    assert scheduler.admit([entry("t2", known=True)], START)[0].lease == scheduler.held[0]
    assert scheduler.undelivered == scheduler.held
    scheduler.delivered(scheduler.held)
    assert not scheduler.undelivered


def test_delivery_of_an_older_lease_does_not_count(scheduler: TaskScheduler) -> None:
    """The newer one still has to be told."""
    old = scheduler.held[0]
    scheduler.settle([again(old)], START + 1)
    scheduler.delivered([old])
    assert scheduler.undelivered == scheduler.held


def test_tasks_that_fall_silent_are_asked_after(scheduler: TaskScheduler) -> None:
    """First those that should have started; those that wait and were heard of, when they should have spoken again."""
    assert scheduler.next_check() == START + CHECK_AFTER
    assert scheduler.overdue(START + CHECK_AFTER - 1) == []
    assert scheduler.overdue(START + CHECK_AFTER) == ["t1", "t2", "t3"]
    assert scheduler.overdue(START + CHECK_AFTER, limit=2) == ["t1", "t2"]
    scheduler.admit([entry("t2", known=True), entry("t1", known=True)], START + 1)
    assert scheduler.overdue(START + 1 + CHECK_AFTER) == ["t3", "t1"]
    assert scheduler.overdue(START + 1 + CHECK_AFTER + RENEW_PLACE_AFTER) == ["t3", "t1", "t2"]


def test_a_task_that_is_alive_is_left_alone_for_a_while(scheduler: TaskScheduler) -> None:
    """One that holds a device is asked after sooner than one that waits, since it keeps others from it."""
    now = START + CHECK_AFTER
    assert not scheduler.asked_after(AskedAfter(alive=("t1", "t2", "t3", "nobody")), now, now + 1)
    assert scheduler.overdue(now + 1 + CHECK_AFTER) == ["t1"]
    assert scheduler.overdue(now + 1 + CHECK_AFTER + RENEW_PLACE_AFTER) == ["t1", "t2", "t3"]


def test_what_a_task_that_is_gone_had_is_taken_back(scheduler: TaskScheduler) -> None:
    """Its lease goes to the next, its place to nobody."""
    now = START + CHECK_AFTER
    assert scheduler.asked_after(AskedAfter(gone=("t1", "t2", "nobody")), now, now + 1) == ["t1", "t2"]
    assert holders(scheduler) == {"t3": "d"}
    assert queued(scheduler) == []


def test_a_task_that_spoke_in_the_meantime_is_believed(scheduler: TaskScheduler) -> None:
    """What Temporal said was true when it was asked, and may not be by now."""
    asked_at = START + CHECK_AFTER
    scheduler.admit([entry("t1", known=True)], asked_at)
    assert scheduler.asked_after(AskedAfter(gone=("t1",)), asked_at, asked_at + 1) == []
    assert holders(scheduler) == {"t1": "d"}


def test_an_idle_pool_has_nobody_to_ask_after() -> None:
    """Then it can sleep."""
    scheduler = pool(device("d"))
    assert scheduler.next_check() is None
    assert not scheduler.busy
    scheduler.admit([entry("t1")], START)
    assert scheduler.busy

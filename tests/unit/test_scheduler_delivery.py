"""Which tasks have to be told of their leases, and which are asked after because they fell silent."""

from __future__ import annotations

import pytest

from support.rules import START, again, busy_pool, device, entry, holders, pool, settlement
from toolcrib.scheduling.asking import CHECK_AFTER, CHECK_EVERY
from toolcrib.scheduling.messages import AskedAfter, SettleKind
from toolcrib.scheduling.scheduler import TaskScheduler


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


def test_tasks_are_asked_after_in_time(scheduler: TaskScheduler) -> None:
    """First when they should have started, later every now and then: those that wait, and those that hold devices."""
    assert scheduler.next_check() == START + CHECK_AFTER
    assert scheduler.members == ["t2", "t3", "t1"]
    now = START + CHECK_AFTER
    assert not scheduler.asked_after(AskedAfter(gone=("nobody",), missing=("nobody",)), now, now + 1)
    assert scheduler.next_check() == now + 1 + CHECK_EVERY
    scheduler.settle([settlement(SettleKind.RELEASE, scheduler.held[0])], now + 2)
    assert scheduler.members == ["t3", "t2"]
    assert scheduler.next_check() == now + 1 + CHECK_EVERY


def test_tasks_are_asked_after_together() -> None:
    """However their submissions were spread: each question costs the pool some events."""
    scheduler = pool(device("d"))
    for n in range(5):
        scheduler.admit([entry(f"t{n}")], START + 8 * n)
    looks, now = 0, START + 8 * 4 + CHECK_AFTER
    end = now + 20 * CHECK_EVERY
    scheduler.asked_after(AskedAfter(), now, now)
    while (due := scheduler.next_check()) is not None and due < end:
        scheduler.asked_after(AskedAfter(), due, due)
        looks += 1
    assert looks == 19


def test_a_task_that_comes_due_while_the_question_is_on_its_way_is_asked_after_soon(scheduler: TaskScheduler) -> None:
    """It was too young for the answer to count, and must not have to wait for the next round."""
    scheduler.admit([entry("t4")], START + 1)
    asked_at = START + CHECK_AFTER
    assert not scheduler.asked_after(AskedAfter(missing=("t4",)), asked_at, asked_at + 2)
    assert scheduler.next_check() == START + 1 + CHECK_AFTER


def test_a_task_that_could_not_be_told_is_asked_after_soon(scheduler: TaskScheduler) -> None:
    """It may be gone, and keeps a device from others."""
    scheduler.settle([settlement(SettleKind.RELEASE, scheduler.held[0])], START + 1)
    scheduler.missed(scheduler.undelivered, START + 2)
    assert scheduler.next_check() == START + 2


def test_a_task_that_spoke_in_the_meantime_is_believed(scheduler: TaskScheduler) -> None:
    """What Temporal said was true when it was asked, and may not be by now."""
    asked_at = START + CHECK_AFTER
    scheduler.admit([entry("t1", known=True)], asked_at)
    assert scheduler.asked_after(AskedAfter(gone=("t1",)), asked_at, asked_at + 1) == {}
    assert holders(scheduler) == {"t1": "d"}


def test_an_idle_pool_has_nobody_to_ask_after() -> None:
    """Then it can sleep."""
    scheduler = pool(device("d"))
    assert scheduler.next_check() is None
    assert not scheduler.busy
    scheduler.admit([entry("t1")], START)
    assert scheduler.busy

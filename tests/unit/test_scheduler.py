"""What a pool answers, and what it makes of messages that are late, repeated or about something else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.rules import START, again, busy_pool, device, entry, holders, pool, queued, register, settlement
from toolcrib.scheduling.asking import START_WITHIN
from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.errors import from_body
from toolcrib.scheduling.messages import SettleKind, Settlement
from toolcrib.scheduling.scheduler import TaskScheduler

RELEASE, REQUEUE, RETURN, WITHDRAW, _ = SettleKind


@pytest.fixture
def scheduler() -> TaskScheduler:
    """One device, which `t1` holds; `t2` and `t3` wait."""
    return busy_pool()


def test_s1_41_a_grant_is_recorded_whole(scheduler: TaskScheduler) -> None:
    """Task, attempt, device, deadlines and number come together, and the device is leased in the same decision."""
    (lease,) = scheduler.held
    assert (lease.task_id, lease.attempt, lease.device_key) == ("t1", 1, "h/d")
    assert (lease.assigned_at, lease.claim_by, lease.ttl) == (START, START + 30, 15)
    assert lease.id == f"t1.1.{lease.fencing}"
    assert lease.fencing == START * 1000
    assert scheduler.devices[0].state == "leased"


def test_an_admission_says_where_it_leaves_the_task(scheduler: TaskScheduler) -> None:
    """With a lease or a place; until when the task has to start; and how many attempts it has."""
    first, second = scheduler.admit([entry("t1", max_attempts=7), entry("t4")], START + 9)
    assert first.lease == scheduler.held[0]
    assert (first.submitted_at, first.start_by, first.max_attempts) == (START, START + 9 + START_WITHIN, 7)
    assert (second.lease, second.refused, second.submitted_at, second.max_attempts) == (None, None, START + 9, 3)


def test_s1_09_a_full_queue_refuses_with_its_limit() -> None:
    """The limit is on those that wait; refused is just what does not fit, and it leaves no trace."""
    scheduler = pool(device("d"), max_queue_depth=2)
    answers = scheduler.admit([entry(f"t{n}") for n in range(5)], START)
    assert [answer.refused is None for answer in answers] == [True, True, True, False, False]
    refusal = answers[3].refused
    assert refusal is not None
    assert (refusal.code, refusal.message) == ("queue_full", "pool 'default' has 2 queued tasks, its limit is 2")
    assert from_body(refusal).exit_code == 4
    assert queued(scheduler) == ["t1", "t2"]
    scheduler.settle([settlement(RELEASE, scheduler.held[0])], START)
    assert scheduler.admit([entry("t5")], START)[0].refused is None


def test_known_tasks_are_never_refused() -> None:
    """Neither one that waits or runs here, nor one that was admitted in an earlier life of the pool."""
    scheduler = pool(device("d"), max_queue_depth=1)
    scheduler.admit([entry("t1"), entry("t2")], START)
    entries = [entry("t1"), entry("t2"), entry("t3", known=True), entry("t4")]
    assert [scheduler.refusal(each) is None for each in entries] == [True, True, True, False]
    answers = scheduler.admit(entries, START + 1)
    assert [answer.refused is None for answer in answers] == [True, True, True, False]
    assert queued(scheduler) == ["t2", "t3"]


def test_k12_a_requeued_task_keeps_its_place_and_is_not_refused() -> None:
    """Even of tasks that came at the same time it stays before those that came after it, in a queue that is full."""
    scheduler = pool(device("d"), max_queue_depth=2)
    scheduler.admit([entry("t1"), entry("t2"), entry("t3")], START)
    register(scheduler, "h", [], START)
    scheduler.settle([again(scheduler.held[0])], START + 9)
    assert queued(scheduler) == ["t1", "t2", "t3"]
    assert scheduler.admit([entry("t4")], START + 9)[0].refused is not None


def test_a_task_of_an_earlier_life_of_the_pool_gets_its_old_place() -> None:
    """It says when it was submitted, and how often it was tried."""
    scheduler = pool()
    scheduler.admit([entry("new")], START)
    scheduler.admit([entry("old", submitted_at=START - 99, attempts=2, known=True)], START)
    assert queued(scheduler) == ["old", "new"]
    register(scheduler, "h", [device("d")], START)
    assert [(lease.task_id, lease.attempt) for lease in scheduler.held] == [("old", 3)]


@pytest.mark.parametrize("kind", [RELEASE, REQUEUE, RETURN, WITHDRAW])
def test_a_device_that_comes_back_is_assigned_in_the_same_decision(scheduler: TaskScheduler, kind: SettleKind) -> None:
    """However it comes back, the next task has it at once; with `requeue` that may be the same one."""
    lease = scheduler.held[0]
    message = again(lease) if kind is REQUEUE else settlement(kind, lease)
    scheduler.settle([message], START + 1)
    assert list(holders(scheduler)) == ["t1" if kind is REQUEUE else "t2"]
    assert scheduler.held[0].fencing > lease.fencing
    assert scheduler.held[0].attempt == (2 if kind is REQUEUE else 1)


@pytest.mark.parametrize("kind", [RELEASE, REQUEUE, RETURN])
def test_a_message_about_an_older_lease_changes_nothing(scheduler: TaskScheduler, kind: SettleKind) -> None:
    """Late or repeated, it does not free the device that the same task, or another, holds by now."""
    old = scheduler.held[0]
    scheduler.settle([again(old)], START + 1)
    now = scheduler.held[0]
    scheduler.settle([settlement(kind, old, entry("t1", known=True)), settlement(kind, old)], START + 2)
    scheduler.settle([Settlement(kind=kind, task_id="t1"), Settlement(kind=kind, task_id="nobody")], START + 2)
    assert scheduler.held == [now]
    assert queued(scheduler) == ["t2", "t3"]


def test_a_message_cannot_free_the_lease_of_another_task(scheduler: TaskScheduler) -> None:
    """Lease and task have to belong together."""
    lease = scheduler.held[0]
    scheduler.settle([Settlement(kind=RELEASE, task_id="t2", lease=lease)], START)
    scheduler.settle([Settlement(kind=RELEASE, task_id="t1", lease=replace(lease, fencing=1))], START)
    assert scheduler.held == [lease]


def test_a_repeated_requeue_makes_one_entry(scheduler: TaskScheduler) -> None:
    """Whether it waits or runs again by then."""
    lease = scheduler.held[0]
    scheduler.settle([again(lease), again(lease)], START + 1)
    scheduler.settle([again(lease)], START + 2)
    assert holders(scheduler) == {"t1": "d"}
    assert queued(scheduler) == ["t2", "t3"]


def test_a_withdrawn_task_neither_waits_nor_holds(scheduler: TaskScheduler) -> None:
    """Its lease may still be on its way to it; whatever is out is taken back."""
    scheduler.settle([Settlement(kind=WITHDRAW, task_id=task_id) for task_id in ("t1", "t3", "nobody")], START)
    assert holders(scheduler) == {"t2": "d"}
    assert queued(scheduler) == []
    assert [lease.task_id for lease in scheduler.undelivered] == ["t2"]


def test_the_numbers_of_leases_grow_while_time_stands_still_or_steps_back() -> None:
    """They are the time in milliseconds, or one more than the last."""
    scheduler = pool(device("d"))
    numbers = []
    for n, now in enumerate((START, START, START - 99, START + 0.0004, START + 1)):
        scheduler.admit([entry(f"t{n}")], now)
        numbers.append(scheduler.held[0].fencing)
        scheduler.settle([settlement(RELEASE, scheduler.held[0])], now)
    assert numbers == sorted(set(numbers))
    assert numbers[0] == START * 1000
    assert numbers[-1] == (START + 1) * 1000


def test_the_cap_bounds_leases_and_none_means_no_cap() -> None:
    """A lower cap takes nothing away; a higher one gives at once what waits for it."""
    scheduler = pool(*(device(f"d{n}") for n in range(5)), max_concurrent=2)
    scheduler.admit([entry(f"t{n}") for n in range(5)], START)
    for cap, expected in ((2, 2), (1, 2), (4, 4), (3, 4), (None, 5)):
        scheduler.configure(scheduler.config.changed({"max_concurrent": cap}), START)
        assert len(scheduler.held) == expected
    assert PoolConfig().max_concurrent == 3


def test_k26_all_free_slots_are_filled() -> None:
    """Whatever freed them, and however many there are."""
    scheduler = pool(*(device(f"d{n}") for n in range(3)))
    scheduler.admit([entry(f"t{n}") for n in range(6)], START)
    scheduler.settle([settlement(RELEASE, lease) for lease in scheduler.held], START)
    assert list(holders(scheduler)) == ["t3", "t4", "t5"]

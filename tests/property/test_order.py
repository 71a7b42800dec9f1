"""Decisions depend on what is documented, and on nothing else: not on the order of insertion, not on hash seeds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.rules import START, device, entry, holders, pool, register, settlement, waiting
from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.messages import SettleKind
from toolcrib.scheduling.pool import PoolState, dump_state
from toolcrib.scheduling.pool_view import pool_view
from toolcrib.scheduling.scheduler import TaskScheduler
from toolcrib.scheduling.waiting import Waiting

STRATEGIES = ("fifo_match", "priority_fifo")
TESTS = Path(__file__).parents[1]

DEMANDS = st.builds(
    Constraints,
    driver_type=st.sampled_from([None, None, "phone"]),
    tags=st.sampled_from([(), ("a",), ("a", "b")]),
    device_id=st.sampled_from([None, None, None, "d1"]),
)
DETAILS = st.tuples(DEMANDS, st.integers(1, 5), st.sampled_from([START, START + 1]))


@st.composite
def a_queue_twice(draw: st.DrawFn) -> tuple[list[Waiting], list[Waiting]]:
    """Return the same waiting tasks in two orders."""
    details = draw(st.lists(DETAILS, max_size=12))
    tasks = [
        waiting(f"t{n}", n, constraints=demand, priority=priority, submitted_at=at)
        for n, (demand, priority, at) in enumerate(details)
    ]
    return tasks, draw(st.permutations(tasks))


@given(a_queue_twice(), st.sampled_from(STRATEGIES), st.sampled_from([None, 1, 3]))
def test_the_order_of_insertion_does_not_matter(
    queues: tuple[list[Waiting], list[Waiting]], strategy: str, cap: int | None
) -> None:
    """However a queue was put together, the same tasks get the same devices, in the same order."""
    answers = []
    for queue in queues:
        state = PoolState(name="default", config=PoolConfig(strategy=strategy, max_concurrent=cap))
        scheduler = TaskScheduler(state)
        register(scheduler, "h", [device("d1", "a"), device("d2", driver_type="phone")], START)
        register(scheduler, "h2", [device("d1", "a", "b", driver_type="phone")], START)
        state.queue = [Waiting(**vars(task)) for task in queue]
        scheduler = TaskScheduler(state)
        answers.append((scheduler.assign(START + 9), [task.task_id for task in scheduler.queue.in_order()]))
    assert answers[0] == answers[1]


@given(st.permutations(["d1", "d2", "d3"]))
def test_devices_are_taken_in_the_order_of_their_registration(ids: list[str]) -> None:
    """The first that was registered goes first, whatever it is called, also after its host has come back."""
    scheduler = pool(*map(device, ids))
    register(scheduler, "h", map(device, reversed(ids)), START, "two")
    scheduler.admit([entry("t1"), entry("t2"), entry("t3")], START)
    assert list(holders(scheduler).values()) == ids


@pytest.mark.parametrize("seed", ["1", "4711"])
def test_decisions_do_not_depend_on_the_hash_seed(seed: str) -> None:
    """A pool's decisions are replayed by other processes: each of them has to decide the same, byte for byte."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(TESTS)}
    ran = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == _trace()


def _trace() -> str:
    """Return what a pool decided in the course of a day that is the same every time."""
    dice, scheduler, lines = Random(7), pool(max_concurrent=4), []
    tags = [f"tag{n}" for n in range(6)]
    for step in range(300):
        now = START + step
        if step % 50 == 0:
            specs = [device(f"d{n}", *dice.sample(tags, 3), driver_type=dice.choice(["x", "y"])) for n in range(4)]
            register(scheduler, dice.choice(["h1", "h2"]), specs, now, f"i{step}")
        wanted = sorted(dice.sample(tags, dice.randint(0, 2)))
        scheduler.admit([entry(f"t{step}", *wanted, priority=dice.randint(1, 5))], now)
        if scheduler.held and dice.random() < 0.7:
            lease = dice.choice(scheduler.held)
            again = entry(lease.task_id, attempts=lease.attempt, known=True)
            scheduler.settle([settlement(dice.choice(list(SettleKind)), lease, again)], now)
        lines.append(" ".join(lease.id for lease in scheduler.held))
    lines += [pool_view(scheduler).model_dump_json(), dump_state(scheduler.state).hex()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(_trace())

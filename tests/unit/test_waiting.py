"""The queue and its index."""

from __future__ import annotations

import pytest

from support.rules import waiting
from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.strategies import FifoMatch
from toolcrib.scheduling.waiting import TaskQueue, entry_weight

TAGGED = Constraints(tags=("a",))


@pytest.fixture
def queue() -> TaskQueue:
    """Three tasks of two demands."""
    queue = TaskQueue(FifoMatch().rank)
    queue.add(waiting("t1", 2))
    queue.add(waiting("t2", 0, constraints=TAGGED))
    queue.add(waiting("t3", 1))
    return queue


def test_tasks_stand_by_rank_whenever_they_came(queue: TaskQueue) -> None:
    """In the whole queue, and within a demand."""
    assert [task.task_id for task in queue.in_order()] == ["t2", "t3", "t1"]
    assert [queue.at(Constraints(), n).task_id for n in range(2)] == ["t3", "t1"]
    assert queue.place(Constraints(), 0) < queue.place(Constraints(), 1)
    assert queue.demands() == [Constraints(), TAGGED]
    assert (queue.size(Constraints()), queue.size(TAGGED), queue.size(Constraints(tags=("b",)))) == (2, 1, 0)


def test_a_task_is_found_and_taken_out_by_its_id(queue: TaskQueue) -> None:
    """Once: then it is not there any more, and neither is its demand if it was the last."""
    assert "t2" in queue
    task = queue.get("t2")
    assert queue.remove("t2") is task
    assert queue.remove("t2") is None
    assert queue.get("t2") is None
    assert "t2" not in queue
    assert len(queue) == 2
    assert queue.demands() == [Constraints()]


def test_the_weight_counts_ids_and_each_demand_once(queue: TaskQueue) -> None:
    """It is told beforehand what one more task would make of it, and an empty queue weighs nothing."""
    assert queue.weight == 3 * entry_weight("t1") + len("a")
    more = Constraints(driver_type="phone", device_id="d", host_id="h", tags=("é",))
    expected = queue.weight_with("t4", more)
    assert expected == queue.weight + entry_weight("t4") + len("phone") + len("d") + len("h") + 2
    assert queue.weight_with("t4", TAGGED) == queue.weight + entry_weight("t4")
    queue.add(waiting("t4", 9, constraints=more))
    assert queue.weight == expected
    for task in list(queue):
        queue.remove(task.task_id)
    assert queue.weight == 0


def test_a_task_without_a_rank_waits_by_its_time_and_is_remembered() -> None:
    """Until it is taken out."""
    queue = TaskQueue(lambda task: None if task.task_id == "odd" else (task.submitted_at,))
    queue.add(waiting("t1", 0))
    queue.add(waiting("odd", 1))
    assert [task.task_id for task in queue.in_order()] == ["t1", "odd"]
    assert list(queue.unranked) == ["odd"]
    queue.remove("odd")
    assert not queue.unranked

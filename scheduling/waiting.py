"""The queue of a pool, indexed by what its tasks ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from sortedcontainers import SortedDict

from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.messages import QueueEntry

MAX_WEIGHT: Final = 1_600_000
"""What a queue may weigh: its pool's state has to fit into one Temporal payload of 2 MiB."""
_ENTRY_WEIGHT: Final = 20
_JUST_AFTER: Final = 0.001


@dataclass(kw_only=True)
class Waiting:
    """A task in the queue, or the same task while it holds a device and may come back. Times are unix seconds."""

    task_id: str
    constraints: Constraints
    priority: int
    submitted_at: float
    sequence: int
    """Breaks ties of `submitted_at`."""
    attempts: int
    max_attempts: int | None
    check_at: float
    """When the pool asks Temporal whether the task still runs, unless it hears from it before."""
    heard_at: float
    """When the pool last heard from the task."""
    avoids: tuple[str, ...] = ()
    """Keys of devices that it gets only if it can get no other."""
    not_before: float = 0.0
    """It gets no device earlier; 0 once that time has come."""

    def heard(self, now: float, check_after: float) -> None:
        """Note that the task spoke, and when to ask after it if it falls silent."""
        self.heard_at, self.check_at = now, now + check_after

    def wait_past(self, moment: float, now: float) -> None:
        """Get no device up to `moment`: its task refuses what was assigned till then, and that clock may be ahead."""
        if now <= moment:
            self.not_before = max(self.not_before, moment + _JUST_AFTER)

    @classmethod
    def of(cls, entry: QueueEntry, *, sequence: int, submitted_at: float, now: float, check_after: float) -> Waiting:
        """Return the task that `entry` tells of, with that place."""
        return cls(
            task_id=entry.task_id,
            constraints=entry.constraints,
            priority=entry.priority,
            submitted_at=submitted_at,
            sequence=sequence,
            attempts=entry.attempts,
            max_attempts=entry.max_attempts,
            check_at=now + check_after,
            heard_at=now,
            avoids=entry.avoids,
            not_before=now + entry.backoff if entry.backoff > 0 else 0.0,
        )


class TaskQueue:
    """Waiting tasks. Those with equal demands share a bucket, so that one decision looks at one task of each."""

    def __init__(self, rank: Callable[[Waiting], tuple[float, ...] | None]) -> None:
        """`rank` returns where a task stands, or None if that cannot be told."""
        self._rank = rank
        self._buckets: dict[Constraints, SortedDict[tuple[float, ...], Waiting]] = {}
        self._places: dict[str, tuple[Constraints, tuple[float, ...]]] = {}
        self._backing_off: dict[str, Waiting] = {}
        """Those that get no device yet; they have their places, and are in no bucket."""
        self.weight = 0
        """Roughly the bytes it takes in the pool's serialised state."""
        self.unranked: dict[str, None] = {}
        """Ids of the tasks whose place could not be told; they stand by their time of submission."""

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, task_id: object) -> bool:
        return task_id in self._places

    def __iter__(self) -> Iterator[Waiting]:
        for bucket in self._buckets.values():
            yield from bucket.values()
        yield from self._backing_off.values()

    def add(self, task: Waiting) -> None:
        """Put `task` in its place; it must not be in the queue yet."""
        rank = self._rank(task)
        if rank is None:
            rank = (task.submitted_at,)
            self.unranked[task.task_id] = None
        place = (*rank, task.sequence)
        self._places[task.task_id] = (task.constraints, place)
        self.weight += entry_weight(task.task_id, task.avoids)
        if task.not_before > 0:
            self._backing_off[task.task_id] = task
            self.weight += _demand_weight(task.constraints)
            return
        if task.constraints not in self._buckets:
            self._buckets[task.constraints] = SortedDict()
            self.weight += _demand_weight(task.constraints)
        self._buckets[task.constraints][place] = task

    def remove(self, task_id: str) -> Waiting | None:
        """Take a task out; None if it is not there."""
        if task_id not in self._places:
            return None
        demand, place = self._places.pop(task_id)
        self.unranked.pop(task_id, None)
        if (later := self._backing_off.pop(task_id, None)) is not None:
            self.weight -= entry_weight(task_id, later.avoids) + _demand_weight(demand)
            return later
        bucket = self._buckets[demand]
        task: Waiting = bucket.pop(place)
        self.weight -= entry_weight(task_id, task.avoids)
        if not bucket:
            del self._buckets[demand]
            self.weight -= _demand_weight(demand)
        return task

    def get(self, task_id: str) -> Waiting | None:
        """Return a task; None if it is not there."""
        if task_id not in self._places:
            return None
        demand, place = self._places[task_id]
        return self._backing_off.get(task_id) or self._buckets[demand][place]

    def wake(self, now: float) -> None:
        """Let those have devices whose time has come."""
        for task in [task for task in self._backing_off.values() if task.not_before <= now]:
            self.remove(task.task_id)
            task.not_before = 0.0
            self.add(task)

    def next_due(self) -> float | None:
        """Return when the next one's time will have come, in unix seconds; None if all have."""
        return min((task.not_before for task in self._backing_off.values()), default=None)

    def demands(self) -> list[Constraints]:
        """Return the distinct demands."""
        return list(self._buckets)

    def size(self, demand: Constraints) -> int:
        """Return how many tasks have that demand."""
        return len(self._buckets.get(demand, ()))

    def at(self, demand: Constraints, index: int) -> Waiting:
        """Return the task that `index` others with that demand go before."""
        task: Waiting = self._buckets[demand].peekitem(index)[1]
        return task

    def place(self, demand: Constraints, index: int) -> tuple[float, ...]:
        """Return the place in the whole queue of the task that `at` returns; lower goes first."""
        place: tuple[float, ...] = self._buckets[demand].peekitem(index)[0]
        return place

    def in_order(self) -> list[Waiting]:
        """Return every task, first served first."""
        return sorted(self, key=lambda task: self._places[task.task_id][1])

    def weight_with(self, task_id: str, demand: Constraints, avoids: tuple[str, ...] = ()) -> int:
        """Return what the queue would weigh with one more task."""
        more = 0 if demand in self._buckets else _demand_weight(demand)
        return self.weight + entry_weight(task_id, avoids) + more


def entry_weight(task_id: str, avoids: tuple[str, ...] = ()) -> int:
    """Return the bytes that a task adds to a pool's compressed state."""
    return len(task_id) + _ENTRY_WEIGHT + sum(len(key) for key in avoids)


def _demand_weight(demand: Constraints) -> int:
    texts = (demand.driver_type, demand.device_id, demand.host_id, demand.workflow, *demand.tags)
    return sum(len(text.encode()) for text in texts if text)

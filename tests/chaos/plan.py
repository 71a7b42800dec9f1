"""What is to happen in a chaos run: tasks and faults, drawn from the seed and nothing else."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """The kinds of faults. A new one gets an entry in `SPANS` and in `WAYS` of `faults` as well."""

    HOST_KILLED = "host killed"
    HOST_STOPPED = "host stopped and continued"
    GUARD_KILLED = "guard killed"
    HOST_WIPED_OUT = "host, guard and keepers killed at once"
    CUT_REFUSING = "connection cut, refusing"
    CUT_SILENT = "connection cut, swallowing"
    SCHEDULER_KILLED = "scheduler killed"
    SERVER_KILLED = "server killed"
    TASK_TERMINATED = "task terminated"
    TASK_RESET = "task reset"
    TASK_CANCELLED = "task cancelled"


SPANS: Final = {
    Kind.HOST_KILLED: (0.0, 4.0),
    Kind.HOST_STOPPED: (1.0, 14.0),
    Kind.GUARD_KILLED: (0.0, 0.0),
    Kind.HOST_WIPED_OUT: (0.0, 4.0),
    Kind.CUT_REFUSING: (1.0, 14.0),
    Kind.CUT_SILENT: (1.0, 14.0),
    Kind.SCHEDULER_KILLED: (0.0, 4.0),
    Kind.SERVER_KILLED: (0.0, 4.0),
    Kind.TASK_TERMINATED: (0.0, 0.0),
    Kind.TASK_RESET: (0.0, 0.0),
    Kind.TASK_CANCELLED: (0.0, 0.0),
}
"""Seconds that each lasts; what has been killed stays down for so long."""
OF_TASKS: Final = (Kind.TASK_TERMINATED, Kind.TASK_RESET, Kind.TASK_CANCELLED)
"""These hit one task; the others, but for those of the server and of schedulers, hit a host."""
OF_SCHEDULERS: Final = (Kind.SCHEDULER_KILLED, Kind.SERVER_KILLED)

FIRST: Final = 3.0
"""Seconds without a fault at the beginning."""
PAUSE: Final = (2.5, 8.0)
"""Seconds from one fault to the next, at least and at most."""
RECOVERY: Final = 8.0
"""Seconds from the end of a fault to the next one of the same host, scheduler or server."""
CALM_AFTER: Final = 12
"""Faults after which there are none for a while."""
CALM: Final = 10.0
AT_ONCE: Final = 0.3
"""The part of the tasks that is submitted in one go."""
BUSY: Final = 0.35
"""The part of all devices' time that the tasks would take if nothing happened: much of it goes to recovery."""
LONG: Final = 0.04
"""The part of the tasks that outlives a lapsed lease and the rest of its device, if nobody ends it."""
LONG_SPAN: Final = (15.0, 25.0)
STRAY: Final = 0.3
"""The part of the tasks that leaves a child behind."""

Target = tuple[str, int]
"""What recovers on its own after a fault."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A task: submitted `at` so many seconds after the beginning, it works for `seconds`."""

    at: float
    seconds: float
    stray: bool


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault: `at` so many seconds after the beginning, for `lasts` seconds."""

    at: float
    kind: Kind
    lasts: float
    target: float
    """What is hit, as a fraction from 0 to 1 of all that could be."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that is drawn for a run."""

    seed: int
    seconds: float
    hosts: int
    slots: int
    jobs: tuple[Job, ...]
    faults: tuple[Fault, ...]


def draw(
    seed: int,
    *,
    seconds: float,
    tasks: int,
    hosts: int = 3,
    slots: int = 2,
    kinds: Sequence[Kind] = tuple(Kind),
    pause: tuple[float, float] = PAUSE,
) -> Plan:
    """Return the plan of a seed: every kind once if there is time, and then any of them."""
    chance = random.Random(seed)
    jobs = [_job(chance, seconds, BUSY * seconds * hosts * slots / tasks) for _ in range(tasks)]
    return Plan(
        seed=seed,
        seconds=seconds,
        hosts=hosts,
        slots=slots,
        jobs=tuple(sorted(jobs, key=lambda job: job.at)),
        faults=tuple(_faults(chance, seconds, hosts, kinds, pause)),
    )


def _job(chance: random.Random, seconds: float, mean: float) -> Job:
    """Draw a task; on average it takes `mean` seconds."""
    shorter = max(0.1, mean - LONG * sum(LONG_SPAN) / 2)
    return Job(
        at=max(0.0, chance.uniform(-AT_ONCE, 1 - AT_ONCE)) * seconds,
        seconds=round(chance.uniform(*LONG_SPAN) if chance.random() < LONG else chance.uniform(0, 2 * shorter), 2),
        stray=chance.random() < STRAY,
    )


def _faults(
    chance: random.Random, seconds: float, hosts: int, kinds: Sequence[Kind], pause: tuple[float, float]
) -> Iterator[Fault]:
    """Draw faults so that nothing is hit again before it had time to recover; kinds that are still missing go first."""
    missing, free_from = list(kinds), dict.fromkeys((one for kind in kinds for one in _targets(kind, hosts)), 0.0)
    at, count = FIRST, 0
    while True:
        kind, target, at = _next(chance, missing or kinds, free_from, at, hosts)
        if at > seconds:
            return
        if kind in missing:
            missing.remove(kind)
        lasts = round(chance.uniform(*SPANS[kind]), 1)
        if kind not in OF_TASKS:
            free_from[target] = at + lasts + RECOVERY
        targets = _targets(kind, hosts)
        hit = (targets.index(target) + chance.random()) / len(targets)
        yield Fault(at=round(at, 1), kind=kind, lasts=lasts, target=hit)
        count += 1
        at += chance.uniform(*pause) + (CALM if count % CALM_AFTER == 0 else 0.0)


def _next(
    chance: random.Random, kinds: Sequence[Kind], free_from: Mapping[Target, float], at: float, hosts: int
) -> tuple[Kind, Target, float]:
    """Draw a kind and what it hits, of what has recovered by then, and return them with the time of the fault."""
    at = max(at, min(free_from[one] for kind in kinds for one in _targets(kind, hosts)))
    free = [(kind, one) for kind in kinds for one in _targets(kind, hosts) if free_from[one] <= at]
    kind = chance.choice([kind for kind in kinds if any(kind is other for other, _ in free)])
    return kind, chance.choice([one for other, one in free if other is kind]), at


def _targets(kind: Kind, hosts: int) -> list[Target]:
    if kind in OF_TASKS:
        return [("task", 0)]
    if kind in OF_SCHEDULERS:
        return [("scheduling", 0)]
    return [("host", number) for number in range(hosts)]

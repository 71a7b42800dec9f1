"""The plan of a chaos run."""

from __future__ import annotations

from itertools import pairwise

import pytest

from chaos.faults import WAYS
from chaos.plan import OF_SCHEDULERS, OF_TASKS, RECOVERY, SPANS, Fault, Kind, draw


def test_the_seed_alone_decides() -> None:
    """The same seed gives the same plan, another one another."""
    assert draw(7, seconds=60, tasks=40) == draw(7, seconds=60, tasks=40)
    assert draw(7, seconds=60, tasks=40).faults != draw(8, seconds=60, tasks=40).faults


@pytest.mark.parametrize("seed", range(20))
def test_every_kind_is_there_and_none_too_late(seed: int) -> None:
    """Five minutes see every kind of fault, and none begins when the time is over."""
    plan = draw(seed, seconds=300, tasks=300)
    assert {fault.kind for fault in plan.faults} == set(Kind)
    assert all(fault.at <= 300 for fault in plan.faults)
    assert len(plan.jobs) == 300


def hit(fault: Fault) -> tuple[str, int]:
    """Return what is to recover after a fault."""
    return ("scheduling", 0) if fault.kind in OF_SCHEDULERS else ("host", int(fault.target * 3))


@pytest.mark.parametrize("seed", range(20))
def test_what_was_hit_has_time_to_recover(seed: int) -> None:
    """No host is hit again within 8 s of a fault's end, nor are schedulers and the server."""
    faults: dict[tuple[str, int], list[Fault]] = {}
    for fault in draw(seed, seconds=300, tasks=300, hosts=3).faults:
        if fault.kind not in OF_TASKS:
            faults.setdefault(hit(fault), []).append(fault)
    assert all(
        later.at - (earlier.at + earlier.lasts) > RECOVERY - 0.2
        for of in faults.values()
        for earlier, later in pairwise(of)
    )


def test_every_kind_can_be_done() -> None:
    """Each kind of fault has a way to be injected and a span."""
    assert set(WAYS) == set(SPANS) == set(Kind)

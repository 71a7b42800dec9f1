"""The short chaos run, which is part of `make test`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.plan import Kind, draw
from chaos.run import run

SEED = int(os.environ.get("CHAOS_SEED", "8"))


@pytest.mark.timeout(420)
async def test_nothing_overlaps_is_lost_or_stays_leased(tmp_path: Path) -> None:
    """Whatever is killed, stopped or cut off: works never overlap, every task ends once, all devices come back."""
    plan = draw(SEED, seconds=40, tasks=50, pause=(1.0, 3.5))
    assert {fault.kind for fault in plan.faults} == set(Kind), "the seed leaves out a kind of fault"
    outcome = await run(plan, tmp_path)
    print(outcome)
    assert not outcome.violations, f"{outcome}\nlogs: {tmp_path}"

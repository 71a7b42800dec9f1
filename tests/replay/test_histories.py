"""Workflows that were under way under an earlier version go on under this one."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import sys
from pathlib import Path

import pytest
from replay.definition_scenarios import DEFINITION_SCENARIOS
from replay.pool_scenarios import POOL_SCENARIOS
from replay.task_scenarios import TASK_SCENARIOS
from temporalio.workflow import NondeterminismError

from support.decisions import DecidedOtherwise
from support.histories import FOLDER, STRICT, loaded, recorded, replay

SCENARIOS = (*POOL_SCENARIOS, *TASK_SCENARIOS, *DEFINITION_SCENARIOS)
FILES = sorted(FOLDER.glob("*.json"))
LARGEST = 60 * 1024
REPLAY_ALL = """
import asyncio
import os
from support.histories import STRICT, recorded, replay

asyncio.run(replay(recorded(), STRICT))
os._exit(0)  # the SDK's threads may abort an interpreter that ends while they still run
"""
FROM_A_MACHINE = rb'\d+@\w|/(home|root|tmp|usr|var|work|Users)/|site-packages|"stackTrace":"[^"]'


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
async def test_a_recorded_history_replays(file: Path) -> None:
    """Today's workflows do what was done when the history was recorded."""
    await replay([loaded(file.read_text())])


async def test_the_sandbox_finds_nothing_forbidden() -> None:
    """All histories replay in the SDK's sandbox with our own modules inside: no clock, no chance, no I/O."""
    await replay(recorded(), STRICT)


@pytest.mark.parametrize("seed", ["1", "2"])
async def test_the_order_of_hashes_does_not_matter(seed: str) -> None:
    """All histories replay in processes that hash text in other ways."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed}
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", REPLAY_ALL, env=environment)
    assert await process.wait() == 0


@pytest.mark.parametrize(
    ("name", "was", "becomes"),
    [
        ("done-at-once", '"name":"run_lease"', '"name":"walk_lease"'),
        ("host-stopped", '"name":"presence"', '"name":"absence"'),
        ("queue-timed-out", '"timerId":"1"', '"timerId":"9"'),
    ],
)
async def test_a_history_that_differs_is_refused(name: str, was: str, becomes: str) -> None:
    """A history in which something else was done than today's workflow does makes the replay fail."""
    text = (FOLDER / f"{name}.json").read_text()
    assert was in text
    with pytest.raises(NondeterminismError) as caught:
        await replay([loaded(text.replace(was, becomes))])
    assert "while replaying workflow" in caught.value.__notes__[0]


async def test_other_decisions_are_refused() -> None:
    """A history in which a task got another device fails the replay, though the kinds of commands are the same."""
    text = (FOLDER / "pool-in-two-runs-1.json").read_text()
    answers = [base64.b64decode(data) for data in re.findall('"data":"([^"]*)"', text)]
    answer = next(answer for answer in answers if b'"start_by"' in answer and b'"device_id":"s1"' in answer)
    other = answer.replace(b'"device_id":"s1"', b'"device_id":"s2"')
    with pytest.raises(DecidedOtherwise):
        await replay([loaded(text.replace(base64.b64encode(answer).decode(), base64.b64encode(other).decode()))])


def test_every_scenario_is_recorded() -> None:
    """There is a history of each scenario and of nothing else: `make histories` was run when scenarios changed."""
    scenarios = {scenario.__name__.replace("_", "-") for scenario in SCENARIOS}
    assert {re.sub(r"-\d+$", "", file.stem) for file in FILES} == scenarios


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_history_is_fit_for_the_repository(file: Path) -> None:
    """It is small, and nothing in it tells of the machine that recorded it."""
    written = file.read_bytes()
    assert len(written) < LARGEST
    assert set(re.findall(rb'"identity":"([^"]*)"', written)) == {b"recorder"}
    payloads = [base64.b64decode(data) for data in re.findall(rb'"data":"([^"]*)"', written)]
    for text in (re.sub(rb'"data":"[^"]*"', b"", written), *payloads):
        assert not re.search(FROM_A_MACHINE, text)

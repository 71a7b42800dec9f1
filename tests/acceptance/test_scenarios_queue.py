"""Who waits, for what, and for how long: rows S43 to S57 of failures that other schedulers had."""

from __future__ import annotations

import asyncio
import time

import pytest

from support.lab import Lab, slot, until_status
from support.runners import NOTING, noting
from toolcrib.client import TaskFailed


async def test_scenario_s43_who_waits_for_a_busy_device_blocks_nobody(lab: Lab) -> None:
    """Behind thirty tasks for one phone, a task for another one runs at once."""
    crib = await lab.pool()
    async with lab.host(devices=[slot("busy", tags=["busy"]), slot("free", tags=["free"])]):
        holder = await crib.submit("sleep 300", tags=["busy"])
        await until_status(holder, "dispatched")
        waiting = [await crib.submit("true", tags=["busy"]) for _ in range(30)]
        assert await (await crib.submit("echo free", tags=["free"])).result()
        assert {(await task.status()).status for task in waiting} == {"queued"}
        await holder.cancel()


async def test_scenario_s47_all_that_can_be_matched_are_matched_at_once(lab: Lab) -> None:
    """When five devices come, five of those who wait get one each, in one decision."""
    crib = await lab.pool()
    tasks = [await crib.submit("true") for _ in range(7)]
    await lab.register_only(devices=[slot(f"slot-{n}") for n in range(5)])
    views = [await until_status(task, "assigned") for task in tasks[:5]]
    assert len({view.attempts[0].assigned_at for view in views}) == 1
    assert len({view.device_id for view in views}) == 5
    assert [(await task.status()).status for task in tasks[5:]] == ["queued", "queued"]


async def test_scenario_s49_nobody_polls(lab: Lab) -> None:
    """A task that waits leaves its pool and itself in peace, and gets its device in the decision that frees it."""
    crib = await lab.pool()
    task = await crib.submit("s49", tags=["rare"])
    workflows = [lab.client.get_workflow_handle(name) for name in ("toolcrib-pool-lab", task.id)]
    for workflow in workflows:
        await workflow.query("view")
    before = [(await workflow.describe()).history_length for workflow in workflows]
    begun = time.monotonic()
    while time.monotonic() - begun < 3:
        assert [(await workflow.describe()).history_length for workflow in workflows] == before
        await asyncio.sleep(0.2)
    async with lab.host(devices=[slot("one", tags=["rare"])], goal=NOTING):
        first = await until_status(task, "done")
        chain = [await crib.submit(f"s49-{n}", tags=["rare"]) for n in range(3)]
        await asyncio.gather(*(one.result() for one in chain))
    assert first.attempt == 1
    assert [goal for goal in noting.goals if goal.startswith("s49")] == ["s49", "s49-0", "s49-1", "s49-2"]


async def test_scenario_s55_a_flood_of_higher_priority_starves_nobody_by_default(lab: Lab) -> None:
    """`fifo_match` does not look at priority: a task of the lowest one is served before what came later."""
    crib = await lab.pool()
    low = await crib.submit("s55-low", priority=5)
    flood = [await crib.submit(f"s55-{n}", priority=1) for n in range(10)]
    async with lab.host(goal=NOTING):
        await asyncio.gather(*(task.result() for task in [low, *flood]))
    assert next(goal for goal in noting.goals if goal.startswith("s55")) == "s55-low"


async def test_scenario_s57_what_waits_in_vain_says_so(lab: Lab) -> None:
    """A misspelt tag gets the right spelling, a device that is away is called offline, and who will not wait fails."""
    crib = await lab.pool()
    async with lab.host(devices=[slot("one", tags=["Pixel-8"])]):
        misspelt = await crib.submit("true", tags=["pixel-8"])
        found = (await misspelt.status()).pending_reason
        assert found is not None
        assert found.code == "no_such_device"
        assert "Pixel-8" in found.text
        impatient = await crib.submit("true", tags=["pixel-8"], queue_timeout=1)
        with pytest.raises(TaskFailed, match="no device became free within 1 s"):
            await impatient.result()
    waits = await crib.submit("true", tags=["Pixel-8"])
    offline = (await waits.status()).pending_reason
    assert offline is not None
    assert offline.code == "offline"

"""Cancelling, draining, retiring, reporting: rows S65 to S71 of failures that other schedulers had."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.lab import Lab, slot, until, until_pool, until_status
from support.lost_answers import LostAnswers, losing
from support.processes import host_file, stopped, toolcrib
from toolcrib.client import TaskFailed


async def test_scenario_s65_who_ran_into_its_limit_has_failed_by_it(lab: Lab) -> None:
    """However slowly its processes die: one attempt, the limit as its reason, its output, and how long it took."""
    crib = await lab.pool(lease_ttl=3)
    async with lab.host():
        task = await crib.submit("trap '' TERM; echo begun; while :; do sleep 1; done", timeout=1)
        with pytest.raises(TaskFailed) as caught:
            await task.result()
    view = await task.status()
    assert caught.value.error_code == "time_limit"
    assert caught.value.result["output"] == "begun\n"
    assert [attempt.outcome for attempt in view.attempts] == ["failed"]
    assert view.started_at is not None
    assert view.finished_at is not None
    assert (view.finished_at - view.started_at).total_seconds() >= 1


async def test_scenario_s67_a_task_bound_to_a_retired_device_gets_another(lab: Lab) -> None:
    """Its host is away, and an operator takes the device out of service: the task waits until it cannot be claimed."""
    crib = await lab.pool(claim_timeout=2, lease_ttl=3)
    await lab.register_only("a", [slot("retired")])
    task = await crib.submit("true")
    assert (await until_status(task, "assigned")).device_id == "retired"
    await crib.pool().drain_device("a/retired")
    async with lab.host("b"):
        view = await until_status(task, "done")
    assert [(one.host_id, one.outcome) for one in view.attempts] == [("a", "expired"), ("b", "done")]


async def test_scenario_s69_a_drain_ends(lab: Lab, tmp_path: Path) -> None:
    """A worker that is asked to stop is gone when its drain timeout is over; its work and what waits run elsewhere."""
    crib = await lab.pool()
    file = host_file(tmp_path, "a", drain="1s")
    async with toolcrib(lab.client, tmp_path, "worker", "--role", "host", "--config", str(file)) as draining:
        runs = await crib.submit('[ "$TOOLCRIB_HOST_ID" = b ] || sleep 300', max_attempts=1)
        await until_status(runs, "dispatched")
        waits = [await crib.submit("true") for _ in range(5)]
        assert await stopped(draining) == 0
    pool = await until_pool(crib, lambda pool: [host.state for host in pool.hosts] == ["offline"])
    assert pool.leased == 0
    async with lab.host("b"):
        view = await until(runs, lambda view: view.ended)
        await asyncio.gather(*(task.result() for task in waits))
    assert [(one.host_id, one.outcome) for one in view.attempts] == [("a", "returned"), ("b", "done")]


async def test_scenario_s71_a_lost_acknowledgement_of_the_end_costs_nothing(lab: Lab, tmp_path: Path) -> None:
    """The host reports again, and what is on record stands: one run, one result, one release."""
    crib, answers = await lab.pool(), LostAnswers("report")
    async with Lab(losing(lab.client, answers), lab.crib, lab.folder).host():
        task = await crib.submit(f"echo ran | tee -a {tmp_path / 'journal'}")
        assert (await task.result())["output"] == "ran\n"
        await (await crib.submit("true")).result()
    assert answers.left == []
    assert (tmp_path / "journal").read_text() == "ran\n"
    assert [attempt.outcome for attempt in (await task.status()).attempts] == ["done"]

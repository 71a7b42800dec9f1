"""Pools that a person terminates, deletes or resets: what ran runs on, and tasks and hosts come back by themselves."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from support.lab import Lab, slot, until_pool, until_status
from support.operator import delete, reset, reset_points, terminate, within_a_minute
from support.processes import host_file, toolcrib, without_waiting
from support.runners import CONTROLLED, controlled
from toolcrib.client import PoolView, UnknownPool
from toolcrib.scheduling.names import pool_workflow_id

POOL = pool_workflow_id("lab")
SETTINGS: dict[str, Any] = {"claim_timeout": 2, "lease_ttl": 6}


async def lose(lab: Lab, how: str) -> None:
    """Have the pool begin without its state, as operators do it."""
    if how == "reset":
        await reset(lab, POOL, (await reset_points(lab, POOL))[0])
        return
    await (terminate if how == "terminate" else delete)(lab, POOL)
    await lab.pool(**SETTINGS)
    if how == "delete":
        await lab.enroll()


def device_states(pool: PoolView) -> dict[str, str]:
    """Return the state of each device."""
    return {device.id: device.state for device in pool.devices}


@pytest.mark.parametrize("how", ["terminate", "delete", "reset"])
async def test_scenario_s53_tasks_and_hosts_come_back_to_a_rebuilt_pool(lab: Lab, how: str) -> None:
    """Within a minute: who ran runs on, under the same lease; who waited waits in the same place, and then runs."""
    crib = await lab.pool(**SETTINGS)
    names = [f"s53-{how}-{n}" for n in range(4)]
    async with lab.host(devices=[slot("a"), slot("b")], goal=CONTROLLED):
        tasks = [await crib.submit(name) for name in names]
        before = [await until_status(task, "dispatched") for task in tasks[:2]]
        await until_pool(crib, lambda pool: pool.queued == 2)
        await lose(lab, how)
        pool = await within_a_minute(
            crib.pool().show, lambda pool: pool.leased == 2 and pool.queued == 2 and len(pool.devices) == 2
        )
        assert [entry.id for entry in pool.queue] == [task.id for task in tasks[2:]]
        assert [device.lease_id for device in pool.devices] == [view.attempts[0].lease_id for view in before]
        await within_a_minute(crib.pool().show, lambda pool: set(device_states(pool).values()) == {"leased"})
        for task, name in zip(tasks, names, strict=True):
            await until_status(task, "dispatched")
            controlled.finish(name)
            await task.result()
        after = [await task.status() for task in tasks]
        assert [view.attempt for view in after] == [1] * 4
        assert [controlled.started(name) for name in names] == [1] * 4
        fencing = [view.attempts[0].fencing for view in after]
        assert fencing == sorted(set(fencing))
        assert [view.created_at for view in after] == sorted(view.created_at for view in after)
        await until_pool(crib, lambda pool: pool.leased == 0 and set(device_states(pool).values()) == {"idle"})


async def test_what_ended_while_the_pool_was_gone_harms_no_other(lab: Lab) -> None:
    """Tasks that ended, were terminated or lost their lease meanwhile leave no device behind, and no place."""
    crib = await lab.pool(**SETTINGS)
    names = ["gone-done", "gone-killed", "gone-cancelled", "gone-stays"]
    async with lab.host(devices=[slot(name) for name in names], goal=CONTROLLED):
        tasks = [await crib.submit(name) for name in names]
        for task in tasks:
            await until_status(task, "dispatched")
        waits = await crib.submit("gone-waits")
        await terminate(lab, POOL)
        controlled.finish("gone-done")
        await tasks[0].result()
        await terminate(lab, tasks[1].id)
        await tasks[2].cancel()
        await until_status(tasks[2], "cancelled")
        await lab.pool(**SETTINGS)
        await within_a_minute(waits.status, lambda view: view.status == "dispatched")
        pool = await within_a_minute(crib.pool().show, lambda pool: pool.leased == 2)
        assert {device.task_id for device in pool.devices} == {tasks[3].id, waits.id, None}
        for name, task in (("gone-stays", tasks[3]), ("gone-waits", waits)):
            controlled.finish(name)
            await task.result()
            assert controlled.started(name) == 1
        await until_pool(crib, lambda pool: set(device_states(pool).values()) == {"idle"})


async def test_a_lease_that_lapsed_while_the_pool_was_gone_is_queued_again(lab: Lab, tmp_path: Path) -> None:
    """Its task said so to nobody, and is found by the new pool; the host comes back in a new process."""
    crib = await lab.pool(**SETTINGS)
    file = host_file(tmp_path, "a")
    host = ("worker", "--role", "host", "--config", str(file))
    async with toolcrib(lab.client, tmp_path, *host) as dying:
        task = await crib.submit('[ "$TOOLCRIB_ATTEMPT" = 2 ] || sleep 60')
        await until_status(task, "dispatched")
        await terminate(lab, POOL)
        dying.kill()
        await dying.wait()
    await within_a_minute(task.status, lambda view: view.attempts[-1].outcome == "expired")
    await lab.pool(**SETTINGS)
    async with toolcrib(lab.client, tmp_path, *host):
        view = await within_a_minute(task.status, lambda view: view.status == "done")
    assert [attempt.outcome for attempt in view.attempts] == ["expired", "done"]


async def test_case_e03_a_pool_can_be_reset_again_and_again(lab: Lab) -> None:
    """Every time it begins without what it knew, and finds it again."""
    crib = await lab.pool(claim_timeout=1, lease_ttl=3)
    async with lab.host(goal=CONTROLLED):
        task = await crib.submit("pool-again")
        await until_status(task, "dispatched")
        for _ in range(2):
            await reset(lab, POOL, (await reset_points(lab, POOL))[-1])
            await until_pool(crib, lambda pool: pool.opens_at is not None)
            await within_a_minute(
                crib.pool().show, lambda pool: pool.opens_at is None and device_states(pool) == {"slot-1": "leased"}
            )
        controlled.finish("pool-again")
        await task.result()
        assert controlled.started("pool-again") == 1
        await until_pool(crib, lambda pool: device_states(pool) == {"slot-1": "idle"})


async def test_the_scheduler_creates_pool_default_again_as_it_was(lab: Lab) -> None:
    """Who terminates it finds it running again within a minute, with the settings it had."""
    await lab.crib.pool().configure(max_concurrent=7, lease_ttl=9)
    await terminate(lab, pool_workflow_id("default"))
    with pytest.raises(UnknownPool):
        await lab.crib.pool().show()

    async def show() -> PoolView | None:
        try:
            return await lab.crib.pool().show()
        except UnknownPool:
            return None

    found = await within_a_minute(show, lambda view: view is not None)
    assert found is not None
    assert (found.max_concurrent, found.lease_ttl) == (7, 9)


async def test_a_pool_that_was_ended_says_so_everywhere(lab: Lab, tmp_path: Path) -> None:
    """To clients by name, to who waits for it as the reason, and by commands, each with what to type next."""
    crib = await lab.pool()
    async with lab.host(devices=[slot("a")]):
        task = await crib.submit("true", tags=["nowhere"])
        await terminate(lab, POOL)
        with pytest.raises(UnknownPool, match="'lab' was ended"):
            await crib.pool().show()
        with pytest.raises(UnknownPool, match="'lab' was ended"):
            await crib.submit("true")
        reason = (await task.status()).pending_reason
        assert (reason and reason.code, "was ended" in (reason.text if reason else "")) == ("out_of_service", True)
        code, written = await command(lab, tmp_path, "pool", "show", "lab")
        assert (code, written.splitlines()[0]) == (4, "error: pool 'lab' was ended: its workflow no longer runs")
        assert written.splitlines()[1].startswith("hint: Create it again: toolcrib pool create lab")
        code, written = await command(lab, tmp_path, "pool", "list", "-o", "json")
        assert (code, [pool["name"] for pool in json.loads(written)]) == (0, ["default"])
        await within_a_minute(crib.ended_pools, lambda names: names == ["lab"])
        checks = await within_a_minute(lambda: doctor(lab, tmp_path), lambda checks: "pool lab" in checks)
        assert checks["pool lab"]["verdict"] == "problem"
        assert checks["pool lab"]["text"] == "it was ended, and 1 open task and host lab-1 need it"
        code, written = await command(lab, tmp_path, "list", "--pool", "lab", "-o", "json")
        assert (code, [view["id"] for view in json.loads(written)]) == (0, [task.id])
        await crib.pool().create()
        assert await within_a_minute(crib.ended_pools, lambda names: not names) == []


@pytest.mark.parametrize("words", [("list", "--pool", "nope"), ("watch", "--pool", "nope"), ("pool", "show", "nope")])
async def test_an_unknown_pool_is_refused(lab: Lab, tmp_path: Path, words: tuple[str, ...]) -> None:
    """It is not the same as a pool without tasks."""
    code, written = await command(lab, tmp_path, *words, "-o", "json")
    assert (code, json.loads(written)["error"]["code"]) == (4, "unknown_pool")


async def command(lab: Lab, folder: Path, *words: str) -> tuple[int | None, str]:
    """Run a `toolcrib` command, and return its exit code and what it wrote."""
    log = folder / "command"
    async with toolcrib(lab.client, log, *words) as process, asyncio.timeout(60):
        await process.wait()
    written = without_waiting((log / "log").read_text())
    (log / "log").unlink()
    return process.returncode, written


async def doctor(lab: Lab, folder: Path) -> dict[str, dict[str, str]]:
    """Return what `toolcrib doctor` finds, by name."""
    _, written = await command(lab, folder, "doctor", "-o", "json")
    return {check["name"]: check for check in json.loads(written)["checks"]}

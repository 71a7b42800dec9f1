"""Pools that a person terminates, deletes or resets: what ran runs on, and tasks and hosts come back by themselves."""

from __future__ import annotations

from typing import Any

import pytest

from support.lab import Lab, slot, until_pool, until_status
from support.operator import delete, reset, reset_points, terminate, within_a_minute
from support.runners import CONTROLLED, controlled
from toolcrib.client import PoolView
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

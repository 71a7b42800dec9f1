"""Devices that stay busy, or are not given back: rows S25 to S31 of failures that other schedulers had."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.lab import Lab, slot, until_pool, until_status
from support.processes import command
from toolcrib.activities.pool_link import PoolLinks
from toolcrib.client import TaskRequest
from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.messages import QueueEntry


async def test_scenario_s25_a_request_whose_client_died_holds_nothing(lab: Lab) -> None:
    """A client that dies between admission and start leaves neither a lease nor a place in the queue behind."""
    crib = await lab.pool(max_concurrent=1)
    await lab.register_only()
    link = PoolLinks(lab.client).to("lab")
    admissions = [await link.admit(QueueEntry(task_id=f"task-orphan-{n}", constraints=Constraints())) for n in range(2)]
    assert admissions[0].lease is not None
    waiting = await crib.submit("true")
    view = await crib.pool().show()
    assert (view.leased, view.queued) == (1, 2)
    async with asyncio.timeout(90):
        while (await waiting.status()).status == "queued":
            await asyncio.sleep(0.5)
    assert [entry.id for entry in (await crib.pool().show()).queue] == []


async def test_scenario_s27_a_device_comes_back_on_whichever_host_it_is(lab: Lab) -> None:
    """Two hosts with devices of the same names: after many tasks every device is idle, and serves again."""
    crib = await lab.pool()
    devices = [slot("phone-1"), slot("phone-2")]
    async with lab.host("a", devices), lab.host("b", devices):
        await until_pool(crib, lambda pool: len(pool.devices) == 4)
        tasks = await crib.submit_many([TaskRequest(goal="true", pool="lab")] * 12)
        await asyncio.gather(*(task.result() for task in tasks))
        pool = await until_pool(crib, lambda pool: pool.leased == 0)
        assert [device.state for device in pool.devices] == ["idle"] * 4
        for host in ("a", "b"):
            again = [await crib.submit("true", host_id=host, device_id=device.id) for device in devices]
            await asyncio.gather(*(task.result() for task in again))


async def test_scenario_s29_an_operator_takes_a_device_from_whoever_has_it(lab: Lab, tmp_path: Path) -> None:
    """By `toolcrib cancel` of what the pool shows as its holder; nothing keeps the next one out."""
    crib = await lab.pool()
    async with lab.host():
        holder, next_one = await crib.submit("sleep 300"), await crib.submit("echo mine")
        await until_status(holder, "dispatched")
        (device,) = (await crib.pool().show()).devices
        assert device.task_id == holder.id
        code, _ = await command(lab.client, tmp_path, "cancel", device.task_id or "")
        assert code == 0
        assert (await next_one.result())["output"] == "mine\n"
        pool = await until_pool(crib, lambda pool: pool.leased == 0)
    assert [(one.state, one.in_service, one.task_id) for one in pool.devices] == [("idle", True, None)]


async def test_scenario_s31_nobody_keeps_a_device_for_ever(lab: Lab, tmp_path: Path) -> None:
    """Whoever submitted it may be gone: the time limit ends the work, and the device serves the next one."""
    crib = await lab.pool()
    async with lab.host():
        words = ("submit", "sleep 300", "--timeout", "1s", "--pool", "lab", "--key", "nightly")
        code, _ = await command(lab.client, tmp_path, *words)
        assert code == 0
        view = await until_status(crib.task("task-nightly"), "failed")
        assert view.error is not None
        assert (view.error.code, len(view.attempts)) == ("time_limit", 1)
        await (await crib.submit("true")).result()

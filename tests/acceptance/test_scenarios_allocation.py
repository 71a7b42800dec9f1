"""Double allocation and lost updates: rows S1 to S11 of failures that other schedulers had."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from support.lab import Lab, slot, until, until_pool, until_status
from support.processes import host_file, toolcrib
from toolcrib.client import TaskCancelled, TaskEnded, TaskFailed, TaskHandle, TaskRequest, Toolcrib

QUICK: dict[str, Any] = {"claim_timeout": 5, "lease_ttl": 3, "max_attempts": 10}


def worker(lab: Lab, folder: Path, host_id: str, *devices: str) -> Any:
    """Run a host's worker as a process of its own."""
    file = host_file(folder, host_id, [slot(device) for device in devices or ("slot-1",)])
    return toolcrib(lab.client, folder, "worker", "--role", "host", "--config", str(file))


async def test_scenario_s1_of_many_who_take_one_device_at_once_one_has_it(lab: Lab) -> None:
    """Twenty identical requests in parallel: one is assigned the device, the others wait in line."""
    crib = await lab.pool()
    await lab.register_only()
    tasks = await asyncio.gather(*(crib.submit("true", device_id="slot-1") for _ in range(20)))
    pool = await until_pool(crib, lambda pool: pool.leased + pool.queued == 20)
    statuses = [(await task.status()).status for task in tasks]
    assert (pool.leased, pool.queued) == (1, 19)
    assert sorted(set(statuses)) == ["assigned", "queued"]
    assert statuses.count("assigned") == 1
    assert [device.task_id for device in pool.devices] == [tasks[statuses.index("assigned")].id]


async def test_scenario_s3_a_stalled_holder_that_wakes_up_does_nothing(lab: Lab, tmp_path: Path) -> None:
    """A host that sleeps over its offer finds the lease gone when it wakes; the work has run once, elsewhere."""
    crib = await lab.pool(**QUICK)
    journal = tmp_path / "journal"
    async with worker(lab, tmp_path / "a", "a", "one", "two") as sleeper:
        await until_pool(crib, lambda pool: [host.state for host in pool.hosts] == ["online"])
        sleeper.send_signal(signal.SIGSTOP)
        task = await crib.submit(f'echo "$TOOLCRIB_HOST_ID" >>{journal}')
        assert (await task.status()).host_id == "a"
        async with lab.host("b"):
            view = await until_status(task, "done")
            sleeper.send_signal(signal.SIGCONT)
            awake = await crib.submit("true", host_id="a", device_id="two")
            await until_status(awake, "done")
    assert journal.read_text().split() == ["b"]
    assert [(one.host_id, one.outcome) for one in view.attempts] == [("a", "expired"), ("b", "done")]
    assert (await task.status()).attempts == view.attempts


async def test_scenario_s5_only_its_holder_frees_a_device(lab: Lab) -> None:
    """A waiter that gives up frees nothing of the holder's, and nobody comes in between."""
    crib = await lab.pool()
    await lab.register_only()
    holder, waiter = await crib.submit("true"), await crib.submit("true", queue_timeout=1)
    with pytest.raises(TaskFailed) as caught:
        await waiter.result()
    assert caught.value.error_code == "queue_timeout"
    third = await crib.submit("true")
    await crib.pool().assign()
    (device,) = (await crib.pool().show()).devices
    assert (device.state, device.task_id) == ("leased", holder.id)
    assert [(await task.status()).status for task in (holder, waiter, third)] == ["assigned", "failed", "queued"]


async def test_scenario_s7_a_cancel_during_assignment_leaves_no_reservation(lab: Lab) -> None:
    """Forty tasks are cancelled while they are being assigned: all of them end, and the devices serve on."""
    crib = await lab.pool()
    async with lab.host(devices=[slot("a"), slot("b")]):
        tasks = await asyncio.gather(*(_submitted_and_cancelled(crib) for _ in range(40)))
        for task in tasks:
            assert (await until(task, lambda view: view.ended)).status in {"cancelled", "done"}
        pool = await until_pool(crib, lambda pool: pool.leased == 0)
        assert (pool.queued, [device.state for device in pool.devices]) == (0, ["idle", "idle"])
        await asyncio.gather(*[(await crib.submit("true")).result() for _ in range(2)])


async def test_scenario_s9_a_batch_survives_hosts_that_restart(lab: Lab, tmp_path: Path) -> None:
    """While its hosts are killed and started again, no task of a batch is lost or left with a host's earlier life."""
    crib = await lab.pool(**QUICK)
    async with worker(lab, tmp_path / "b", "b"):
        async with worker(lab, tmp_path / "a", "a", "one", "two") as first:
            await until_pool(crib, lambda pool: len(pool.devices) == 3)
            tasks = await crib.submit_many([TaskRequest(goal="sleep 0.2", pool="lab")] * 30)
            first.kill()
            await first.wait()
        async with worker(lab, tmp_path / "a", "a", "one", "two") as second:
            await until_pool(crib, lambda pool: {host.state for host in pool.hosts} == {"online"})
            second.kill()
            await second.wait()
        async with worker(lab, tmp_path / "a", "a", "one", "two"), asyncio.timeout(120):
            await asyncio.gather(*(task.result() for task in tasks))
        pool = await until_pool(crib, lambda pool: pool.leased == 0)
    assert pool.queued == 0
    for task in tasks:
        assert [attempt.outcome for attempt in (await task.status()).attempts].count("done") == 1


async def test_scenario_s11_devices_of_one_name_on_two_hosts_are_two(lab: Lab) -> None:
    """Taking one leaves the other idle; each is known by its host."""
    crib = await lab.pool()
    for host in ("lab-1", "lab-2"):
        await lab.register_only(host, [slot("emulator-5554")])
    task = await until_status(await crib.submit("true", host_id="lab-2"), "assigned")
    states = {device.key: device.state for device in (await crib.pool().show()).devices}
    assert states == {"lab-1/emulator-5554": "idle", "lab-2/emulator-5554": "leased"}
    other = await until_status(await crib.submit("true", device_id="emulator-5554"), "assigned")
    assert (task.host_id, other.host_id) == ("lab-2", "lab-1")


async def _submitted_and_cancelled(crib: Toolcrib) -> TaskHandle:
    task = await crib.submit("true")
    try:
        await task.cancel()
        await task.result()
    except (TaskCancelled, TaskEnded):
        pass
    return task

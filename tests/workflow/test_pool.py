"""A pool goes on whatever it is told, and whatever its strategy does."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

import pytest
from temporalio.client import WorkflowHandle, WorkflowUpdateFailedError

from support.histories import replay
from support.lab import Lab, slot, until_pool, until_status
from support.moody import MOODY
from support.runners import CONTROLLED, controlled
from toolcrib.client import Toolcrib
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.messages import HostSnapshot
from toolcrib.scheduling.names import pool_workflow_id
from toolcrib.workflows.contract import POOL_ADMIT, POOL_SETTLE, POOL_SILENCE

ENTRY = {"task_id": "task-x", "constraints": {"tags": []}}
MALFORMED = {
    "nothing": None,
    "text": "free it",
    "number": 7,
    "no list": {"kind": "release", "task_id": "t"},
    "unknown kind": [{"kind": "explode", "task_id": "t"}],
    "missing field": [{"kind": "release"}],
    "wrong type": [{"kind": "release", "task_id": 7}],
    "broken lease": [{"kind": "release", "task_id": "t", "lease": {"fencing": "x"}}],
}


async def send(lab: Lab, name: str, argument: Any) -> None:
    """Send a signal to the pool in plain JSON."""
    await lab.client.get_workflow_handle(pool_workflow_id("lab")).signal(name, argument)


async def ask(lab: Lab, name: str, argument: Any) -> Any:
    """Send an update to the pool in plain JSON, and return the answer."""
    return await lab.client.get_workflow_handle(pool_workflow_id("lab")).execute_update(name, argument)


async def serves(lab: Lab, crib: Toolcrib) -> None:
    """Prove that the pool works: a task runs to its end, and the device comes back."""
    async with lab.host():
        await (await crib.submit("true")).result()
        await until_pool(crib, lambda pool: pool.leased == 0)


@pytest.mark.parametrize("signal", [POOL_SETTLE, POOL_SILENCE, "no_such_signal"])
async def test_a_malformed_signal_does_no_harm(lab: Lab, signal: str) -> None:
    """What cannot be understood is left out; what comes after it is served."""
    crib = await lab.pool()
    for payload in MALFORMED.values():
        await send(lab, signal, payload)
    await serves(lab, crib)


@pytest.mark.parametrize("update", [POOL_ADMIT, "register", "configure"])
async def test_a_malformed_update_is_refused(lab: Lab, update: str) -> None:
    """Who sends what cannot be understood gets an error; the pool goes on."""
    crib = await lab.pool()
    for payload in MALFORMED.values():
        with pytest.raises(WorkflowUpdateFailedError):
            await ask(lab, update, payload)
    await serves(lab, crib)


@pytest.mark.parametrize("arguments", [[], [[], []]], ids=["none", "two"])
async def test_a_wrong_number_of_arguments_does_no_harm(lab: Lab, arguments: list[Any]) -> None:
    """A signal with too few or too many arguments is dropped, an update with them refused; the pool goes on."""
    crib = await lab.pool()
    handle: WorkflowHandle[Any, Any] = lab.client.get_workflow_handle(pool_workflow_id("lab"))
    for signal in (POOL_SETTLE, POOL_SILENCE):
        await handle.signal(signal, args=arguments)
    for update in (POOL_ADMIT, "register", "configure"):
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update(update, args=arguments)
    await serves(lab, crib)


@pytest.mark.parametrize(
    "message",
    [
        {"kind": "release"},
        {"kind": "requeue"},
        {"kind": "return"},
        {"kind": "withdraw"},
        {"kind": "requeue", "entry": {**ENTRY, "task_id": "task-other"}},
        {"kind": "requeue", "entry": {**ENTRY, "priority": -3, "attempts": -1, "submitted_at": 0}},
    ],
    ids=str,
)
async def test_a_message_of_a_task_that_is_not_known_does_no_harm(lab: Lab, message: dict[str, Any]) -> None:
    """Whatever a stranger settles, nobody's device is freed, and the pool serves on."""
    crib = await lab.pool()
    await lab.register_only()
    holder = await until_status(await crib.submit("echo"), "assigned")
    await send(lab, POOL_SETTLE, [{"task_id": "task-stranger", **message}])
    pool = await until_pool(crib, lambda pool: pool.leased == 1)
    assert [device.task_id for device in pool.devices] == [holder.id]


async def test_unknown_fields_are_ignored(lab: Lab) -> None:
    """A client, task or host of a later version may say more than this pool understands."""
    crib = await lab.pool()
    device = {"id": "slot-1", "driver": "local", "driver_type": "local", "colour": "red"}
    key = await lab.enroll("h")
    spec = DeviceSpec(id="slot-1", driver="local", driver_type="local")
    said = key.signed_snapshot(HostSnapshot(host_id="h", instance="i", devices=(spec,), serial=2**40), "lab")
    registration = await ask(lab, "register", {**asdict(said), "devices": [device], "mood": "good"})
    assert registration["incarnation"] == 1
    (admission,) = await ask(lab, POOL_ADMIT, [{**ENTRY, "mood": "good"}])
    assert admission["lease"]["device_id"] == "slot-1"
    await send(lab, POOL_SETTLE, [{"kind": "release", "task_id": "task-x", "lease": admission["lease"], "mood": "bad"}])
    await until_pool(crib, lambda pool: pool.leased == 0)


async def test_a_strategy_that_raises_takes_nothing_down(lab: Lab) -> None:
    """The pool says what is wrong and grants nothing; when the cause is gone it grants again."""
    crib = await lab.pool(strategy=MOODY, max_concurrent=1)
    async with lab.host(goal=CONTROLLED):
        running = await crib.submit("moody-1")
        await until_status(running, "dispatched")
        bad = await crib.submit("moody-2", priority=5)
        controlled.finish("moody-1")
        await running.result()
        pool = await until_pool(crib, lambda pool: pool.problem is not None)
        assert pool.problem == f"strategy 'moody': RuntimeError: not in the mood for {bad.id}"
        assert (pool.leased, pool.queued) == (0, 1)
        assert await crib.pool().assign() == 0
        await bad.cancel()
        good = await crib.submit("moody-3")
        await until_status(good, "dispatched")
        assert (await crib.pool().show()).problem is None
        controlled.finish("moody-3")
        await good.result()


async def test_another_strategy_cures_it(lab: Lab) -> None:
    """A pool whose strategy raises can be configured to use another, and then serves the tasks that waited."""
    crib = await lab.pool(strategy=MOODY)
    async with lab.host():
        bad = await crib.submit("true", priority=5)
        await until_pool(crib, lambda pool: pool.problem is not None)
        await crib.pool().configure(strategy="priority_fifo")
        await bad.result()
        assert (await crib.pool().show()).problem is None


async def test_the_cap_can_be_raised_and_lowered_while_tasks_run(lab: Lab) -> None:
    """Raised, waiting tasks start at once; lowered, running ones go on, and no new one starts above the cap."""
    crib = await lab.pool(max_concurrent=1)
    devices = [slot(f"s{n}") for n in range(4)]
    async with lab.host(devices=devices, goal=CONTROLLED):
        goals = [f"cap-{n}" for n in range(5)]
        tasks = [await crib.submit(goal) for goal in goals]
        await until_status(tasks[0], "dispatched")
        assert (await tasks[1].status()).status == "queued"
        await crib.pool().configure(max_concurrent=3)
        for task in tasks[:3]:
            await until_status(task, "dispatched")
        assert (await crib.pool().show()).leased == 3
        await crib.pool().configure(max_concurrent=1)
        assert (await crib.pool().show()).leased == 3
        for goal, task in list(zip(goals, tasks, strict=True))[:2]:
            controlled.finish(goal)
            await task.result()
        pool = await until_pool(crib, lambda pool: pool.leased == 1)
        assert [entry.id for entry in pool.queue] == [task.id for task in tasks[3:]]
        controlled.finish(goals[2])
        await until_status(tasks[3], "dispatched")
        assert (await tasks[4].status()).status == "queued"
        for goal in goals[3:]:
            controlled.finish(goal)
        await asyncio.gather(*(task.result() for task in tasks))


async def test_a_pool_that_is_looked_at_while_it_grants_decides_alike_again(lab: Lab) -> None:
    """Queries that come at any moment change nothing of what a pool decides when it is replayed."""
    crib = await lab.pool(max_concurrent=1)
    async with lab.host():
        tasks = [await crib.submit("true") for _ in range(15)]
        done = asyncio.gather(*(task.result() for task in tasks))
        while not done.done():
            await crib.pool().show()
        await done
    await replay([await lab.client.get_workflow_handle(pool_workflow_id("lab")).fetch_history()])

"""Cancelling at every stage, alone and while the task completes, very often: slots come back, and ends stay."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError

from support.lab import Lab, eventually, slot, until_pool
from support.works import Gated
from toolcrib.client import PoolView, TaskCancelled, TaskEnded, TaskHandle, Toolcrib

AT_ONCE = 8
LEAD = 0.03
"""By up to so many seconds one of two that race is ahead of the other."""
LIFE = 0.8
"""About as many seconds a task takes here from its slot's coming free to its end."""
FREE_WITHIN = 30.0
"""Seconds; a pool that has not heard from a task for 35 asks after it, and takes back what it had if it is gone."""
STATUSES = {"done": WorkflowExecutionStatus.COMPLETED, "cancelled": WorkflowExecutionStatus.CANCELED}


@dataclass
class Races:
    """Where it happens: an application with a slot for each, another with a single one, and a host that is dead."""

    client: Client
    crib: Toolcrib
    gated: Gated
    dice: random.Random
    narrow: asyncio.Lock = field(default_factory=asyncio.Lock)
    ends: list[tuple[TaskHandle, str]] = field(default_factory=list)
    """Every task, and how it had ended when that was first seen."""

    async def submit(self, label: str, **demand: Any) -> TaskHandle:
        """Submit gated work, async or not."""
        kind = self.dice.choice(["wait", "block"])
        demand.setdefault("host_id", "wide")
        return await self.crib.submit(work=kind, inputs={"label": label}, **demand)

    async def race(self, task: TaskHandle, complete: Callable[[], Awaitable[object]]) -> None:
        """Cancel and complete a task at about the same time."""
        first, second = self.dice.sample([lambda: cancel(task), complete], 2)
        await asyncio.gather(first(), self._later(LEAD, second))

    async def cancel_on_its_way(self, task: TaskHandle) -> None:
        """Cancel a task somewhere between now and its end, or just after it."""
        await self._later(self.dice.choice([LEAD, LIFE]), lambda: cancel(task))

    async def _later(self, at_most: float, call: Callable[[], Awaitable[object]]) -> None:
        await asyncio.sleep(self.dice.uniform(0, at_most))
        await call()

    async def ended(self, task: TaskHandle, *expected: str) -> None:
        """Wait for the end of a task, which has to be one of these, and note it; it gives its slot back by itself."""
        try:
            await task.result()
        except TaskCancelled:
            end = "cancelled"
        else:
            end = "done"
        assert end in expected
        self.ends.append((task, end))
        with suppress(WorkflowFailureError):
            await self.client.get_workflow_handle(task.id).result()
        async with asyncio.timeout(FREE_WITHIN):
            while await self._is_known(task):
                await asyncio.sleep(0.1)

    async def _is_known(self, task: TaskHandle) -> bool:
        pool = await self.crib.pool().show()
        return task.id in [device.task_id for device in pool.devices] + [entry.id for entry in pool.queue]


async def cancel(task: TaskHandle) -> None:
    """Cancel a task; that it has ended is no error here."""
    with suppress(TaskEnded):
        await task.cancel()


async def queued(races: Races, label: str) -> None:
    """Nothing fits it: it is cancelled in the queue."""
    task = await races.submit(label, tags=["nowhere"])
    await task.cancel()
    await races.ended(task, "cancelled")
    assert label not in races.gated.started


async def queued_racing(races: Races, label: str) -> None:
    """It is cancelled while the only slot comes free for it, and its work is done at once."""
    async with races.narrow:
        before = await races.submit(f"{label}-before", host_id="narrow")
        races.gated.finish(label)
        task = await races.submit(label, host_id="narrow")
        assert (await task.status()).status == "queued"
        races.gated.finish(f"{label}-before")
        await races.cancel_on_its_way(task)
        await races.ended(before, "done")
        await races.ended(task, "done", "cancelled")


async def assigned(races: Races, label: str) -> None:
    """It has a device of a host that never claims it."""
    task = await races.crib.submit(f"echo {label}", host_id="dead")
    assert (await task.status()).status == "assigned"
    await task.cancel()
    await races.ended(task, "cancelled")


async def assigned_racing(races: Races, label: str) -> None:
    """It is cancelled while its host claims it, and its work is done at once."""
    races.gated.finish(label)
    task = await races.submit(label)
    await races.cancel_on_its_way(task)
    await races.ended(task, "done", "cancelled")


async def running(races: Races, label: str) -> None:
    """Its work is told to stop."""
    task = await races.submit(label)
    await eventually(lambda: races.gated.has_started(label), bool)
    await task.cancel()
    await races.ended(task, "cancelled")
    await eventually(lambda: races.gated.has_stopped(label), bool)


async def running_racing(races: Races, label: str) -> None:
    """Its work ends at about the same time."""
    task = await races.submit(label)
    await eventually(lambda: races.gated.has_started(label), bool)
    await races.race(task, lambda: _finish(races, label))
    await races.ended(task, "done", "cancelled")


async def external(races: Races, label: str) -> None:
    """It has no slot."""
    task = await races.crib.external(label).start()
    await task.cancel()
    await races.ended(task, "cancelled")
    with pytest.raises(TaskEnded):
        await task.complete()


async def external_racing(races: Races, label: str) -> None:
    """Its caller completes it at about the same time, and is told if that came too late."""
    task = await races.crib.external(label).start()

    async def complete() -> None:
        with suppress(TaskEnded):
            await task.complete()

    await races.race(task, complete)
    await races.ended(task, "done", "cancelled")


async def ended(races: Races, label: str) -> None:
    """It is done, or cancelled, and stays so."""
    task = await races.submit(label)
    if races.dice.random() < 0.5:
        await task.cancel()
        await races.ended(task, "cancelled")
        await task.cancel()
        return
    races.gated.finish(label)
    await races.ended(task, "done")
    with pytest.raises(TaskEnded):
        await task.cancel()


async def ended_racing(races: Races, label: str) -> None:
    """Several cancel it as soon as its work is done, and again when it has ended."""
    task = await races.submit(label)
    await eventually(lambda: races.gated.has_started(label), bool)
    races.gated.finish(label)
    await asyncio.gather(cancel(task), races.race(task, lambda: cancel(task)), cancel(task))
    await races.ended(task, "done", "cancelled")
    await asyncio.gather(cancel(task), cancel(task))


KINDS = (
    *(queued, queued_racing, assigned, assigned_racing, running, running_racing),
    *(external, external_racing, ended, ended_racing),
)


@pytest.mark.no_replay
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(("times", "seed"), [(40, 1), pytest.param(200, 2, marks=pytest.mark.long)])
async def test_cancelling_at_every_stage_alone_and_racing(lab: Lab, times: int, seed: int) -> None:
    """In random order, many at once: every slot comes back, and no task that has ended ends otherwise later."""
    crib = await lab.pool(claim_timeout=1_800)
    await lab.register_only("dead", [slot(f"slot-{number}") for number in range(AT_ONCE)])
    races = Races(lab.client, crib, Gated(crib), random.Random(seed))
    order = [kind for kind in KINDS for _ in range(times)]
    races.dice.shuffle(order)
    async with AsyncExitStack() as workers:
        await workers.enter_async_context(crib.worker(slots=AT_ONCE, host_id="wide"))
        await workers.enter_async_context(crib.worker(slots=1, host_id="narrow"))
        await _run_all(races, order)
        await until_pool(crib, _all_free)
        await _check_slots(races)
        await _check_ends(lab, races)


async def _run_all(races: Races, order: Sequence[Callable[[Races, str], Awaitable[None]]]) -> None:
    left = iter(enumerate(order))

    async def work_off() -> None:
        for number, kind in left:
            await kind(races, f"{kind.__name__}-{number}")

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work_off())


def _all_free(pool: PoolView) -> bool:
    return pool.queued == pool.leased == 0 and {device.state for device in pool.devices} == {"idle"}


async def _check_slots(races: Races) -> None:
    """Run one more task on every slot of the applications."""
    pool = await races.crib.pool().show()
    slots = [(device.host_id, device.id) for device in pool.devices if device.host_id != "dead"]
    for host_id, device_id in slots:
        label = f"last-{host_id}-{device_id}"
        races.gated.finish(label)
        await races.ended(await races.submit(label, host_id=host_id, device_id=device_id), "done")


async def _check_ends(lab: Lab, races: Races) -> None:
    looks = asyncio.Semaphore(AT_ONCE)

    async def check(task: TaskHandle, end: str) -> None:
        async with looks:
            await _check_end(lab, task, end)

    await asyncio.gather(*(check(task, end) for task, end in races.ends))


async def _check_end(lab: Lab, task: TaskHandle, end: str) -> None:
    """It is over for Temporal too, in the same way, and so is the one attempt it may have had."""
    found = await lab.client.get_workflow_handle(task.id).describe()
    view = await task.status()
    assert (found.status, view.status) == (STATUSES[end], end), task.id
    assert [attempt.outcome for attempt in view.attempts] in ([], [end]), view.attempts


async def _finish(races: Races, label: str) -> None:
    races.gated.finish(label)

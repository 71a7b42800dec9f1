"""Lives of a DevicePool and of a Host, acted out in a lab of their own so that their histories can be recorded."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final

from temporalio.client import WorkflowHandle
from temporalio.service import RPCError

from support.drivers import flaky, flaky_slot
from support.lab import Lab, eventually, slot, until_pool, until_status
from support.processes import host_file, toolcrib
from support.servers import connect
from toolcrib.activities.pool_link import PoolLinks
from toolcrib.client import Toolcrib
from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.messages import HostSilent, QueueEntry
from toolcrib.scheduling.names import DEVICE_POOL, POOLS_QUEUE, host_workflow_id, pool_workflow_id

SHORT_RUN: Final = 60
"""Events after which the recorded pool goes on in a new run."""

AnyRun = WorkflowHandle[Any, Any]


async def pool_in_two_runs(lab: Lab) -> list[AnyRun]:
    """Hosts come, fall silent and come back, settings change, and the pool goes on in a second run."""
    crib = await _short_pool(lab)
    async with lab.host("a", [slot("s1"), slot("s2", tags=["x"])], pool="short"):
        await crib.pool().configure(max_concurrent=1, strategy="priority_fifo")
        tasks = [await crib.submit("true", name=f"task {number}", priority=5 - number) for number in range(4)]
        await crib.pool().configure(max_concurrent=None)
        for task in tasks:
            await until_status(task, "done")
    link = PoolLinks(lab.client).to("short")
    await link.silence(HostSilent(host_id="a", incarnation=1, reason="it went"))
    async with lab.host("b", pool="short"):
        while len(await _runs(lab, "short")) < 2:
            await until_status(await crib.submit("true"), "done")
        await until_status(await crib.submit("true"), "done")
        await until_pool(crib, lambda pool: pool.leased == 0)
    return (await _runs(lab, "short"))[:2]


async def pool_asks_after_a_task(lab: Lab) -> list[AnyRun]:
    """A client dies after its task was admitted, and another task waits all the while."""
    crib = await lab.pool(max_concurrent=1)
    await lab.register_only()
    entry = QueueEntry(task_id="task-of-nobody", constraints=Constraints())
    assert (await PoolLinks(lab.client).to("lab").admit(entry)).lease is not None
    waiting = await crib.submit("true", key="waits-for-nobody")
    async with asyncio.timeout(90):
        while (await waiting.status()).status == "queued":
            await asyncio.sleep(0.5)
    return [lab.client.get_workflow_handle(pool_workflow_id("lab"))]


async def pool_with_a_failing_device(lab: Lab) -> list[AnyRun]:
    """A device fails, rests and wakes; devices and hosts are taken out of service and resumed; the host leaves."""
    crib = await lab.pool()
    pool, flaky.broken = crib.pool(), {"a"}
    async with lab.host(devices=[flaky_slot("a"), flaky_slot("b")]):
        await until_status(await crib.submit("true"), "done")
        flaky.broken = set()
        await until_status(await crib.submit("true", device_id="a"), "done")
        await pool.quarantine_device("lab-1/b", "its screen is broken")
        await pool.drain_device("lab-1/a")
        waiting = await crib.submit("true", device_id="b")
        await pool.resume_device("lab-1/a")
        await pool.resume_device("lab-1/b")
        await until_status(waiting, "done")
        await pool.drain_host("lab-1")
        waiting = await crib.submit("true")
        await pool.resume_host("lab-1")
        await until_status(waiting, "done")
    await until_pool(crib, lambda view: view.leased == 0 and view.hosts[0].state == "offline")
    return [lab.client.get_workflow_handle(pool_workflow_id("lab"))]


async def host_stopped(lab: Lab) -> list[AnyRun]:
    """The worker stops, and says so."""
    await lab.pool()
    async with lab.host():
        pass
    return [await _ended_host(lab)]


async def host_silent(lab: Lab) -> list[AnyRun]:
    """The worker is killed."""
    await lab.pool(lease_ttl=3)
    file = host_file(lab.folder, "lab-1")
    async with toolcrib(lab.client, lab.folder, "worker", "--role", "host", "--config", str(file)) as process:
        await _shown(lab)
        process.kill()
        return [await _ended_host(lab)]


async def host_in_a_newer_incarnation(lab: Lab) -> list[AnyRun]:
    """A second worker registers while the first one is still counted on."""
    crib = await lab.pool()
    other = await connect(lab.client.service_client.config.target_host, lab.client.namespace)
    async with lab.host():
        await _shown(lab)
        async with replace(lab, client=other).host(machine="there"):
            await until_pool(crib, lambda pool: [host.incarnation for host in pool.hosts] == [2])
    return [await _ended_host(lab)]


async def _short_pool(lab: Lab) -> Toolcrib:
    arguments = [{"max_concurrent": None}, None, SHORT_RUN]
    await lab.client.start_workflow(DEVICE_POOL, args=arguments, id=pool_workflow_id("short"), task_queue=POOLS_QUEUE)
    return Toolcrib(lab.client, pool="short")


async def _runs(lab: Lab, pool: str) -> list[AnyRun]:
    """Return the runs of a pool, the oldest first."""
    runs = [run async for run in lab.client.list_workflows(f"WorkflowId = '{pool_workflow_id(pool)}'")]
    runs.sort(key=lambda run: run.start_time)
    return [lab.client.get_workflow_handle(run.id, run_id=run.run_id) for run in runs]


async def _shown(lab: Lab) -> None:
    """Wait until the host's worker has taken up the activity that shows its presence."""

    async def pending() -> int:
        try:
            found = await lab.client.get_workflow_handle(host_workflow_id("lab-1")).describe()
        except RPCError:
            return 0
        return sum(activity.last_started_time.seconds > 0 for activity in found.raw_description.pending_activities)

    await eventually(pending, lambda count: count > 0)


async def _ended_host(lab: Lab) -> AnyRun:
    handle = lab.client.get_workflow_handle(host_workflow_id("lab-1"))
    async with asyncio.timeout(60):
        await handle.result()
    return handle


POOL_SCENARIOS: Final = (
    pool_in_two_runs,
    pool_asks_after_a_task,
    pool_with_a_failing_device,
    host_stopped,
    host_silent,
    host_in_a_newer_incarnation,
)

"""A user's own Temporal workflow under a lease: the runner `temporal`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import ModuleType

import pytest
from temporalio import activity
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from support.lab import Lab, eventually, slot, until, until_pool, until_status
from support.leased import PLUGIN, Looks
from support.processes import host_file, toolcrib
from support.servers import connect
from toolcrib.client import InvalidRequest, TaskCancelled, TaskFailed, Toolcrib
from toolcrib.scheduling.names import host_work_queue, leased_workflow_id
from toolcrib.worker.embedded import EmbeddedServer

TTL = 3.0


async def status_of(lab: Lab, lease_id: str | None) -> WorkflowExecutionStatus | None:
    """Return how the workflow under a lease is."""
    assert lease_id is not None
    return (await lab.client.get_workflow_handle(leased_workflow_id(lease_id)).describe()).status


async def test_a_workflow_is_told_its_lease_and_so_are_its_activities(lab: Lab, tmp_path: Path) -> None:
    """Async or not, local or of a child: each sees the lease. The workflow's result is the task's."""
    crib = await lab.pool()
    async with lab.host(devices=[slot(tags=["usb"])], workflow="temporal", plugins=[PLUGIN]):
        task = await crib.submit(workflow="Looks", inputs={"word": "hello"})
        result = await task.result()
        view = await task.status()
    lease_id, fencing = view.attempts[0].lease_id, view.attempts[0].fencing
    assert result == {
        "task": task.id,
        "attempt": 1,
        "device": "slot-1",
        "tags": ["usb"],
        "environment": lease_id,
        "seen": {"device": "slot-1", "fencing": fencing, "lease": lease_id},
        "sync": lease_id,
        "local": lease_id,
        "child": lease_id,
    }
    assert await status_of(lab, lease_id) is WorkflowExecutionStatus.COMPLETED


async def test_a_failure_of_a_workflow_is_the_tasks(lab: Lab) -> None:
    """In the words of whoever raised it: an activity, or the workflow's own code, which nobody waits to be mended."""
    crib = await lab.pool()
    async with lab.host(workflow="temporal", plugins=[PLUGIN]):
        for how, message in {
            "activity": "^the board does not boot$",
            "code": "^ValueError: a mistake in the workflow's code",
        }.items():
            task = await crib.submit(workflow="Fails", inputs={"how": how})
            with pytest.raises(TaskFailed, match=message):
                await task.result()
        assert len((await task.status()).attempts) == 1
        task = await crib.submit(workflow="Stubborn", timeout=1)
        with pytest.raises(TaskFailed, match="the work took longer than 1 s"):
            await task.result()
        lease = (await task.status()).attempts[0].lease_id
        assert await status_of(lab, lease) is WorkflowExecutionStatus.TERMINATED


async def test_a_cancelled_task_cancels_its_workflow(lab: Lab, tmp_path: Path) -> None:
    """It and its activities may end in order; one that does not end is terminated, before the device is free."""
    crib = await lab.pool()
    async with lab.host(devices=[slot("a"), slot("b")], workflow="temporal", plugins=[PLUGIN]):
        polite = await crib.submit(workflow="Waits", inputs={"file": str(tmp_path / "file")}, device_id="a")
        stubborn = await crib.submit(workflow="Stubborn", device_id="b")
        await eventually(lambda: _exists(tmp_path / "file.begun"), bool)
        await until_status(stubborn, "dispatched")
        for task in (polite, stubborn):
            await task.cancel()
            with pytest.raises(TaskCancelled):
                await task.result()
        pool = await until_pool(crib, lambda pool: pool.leased == 0)
        leases = [(await task.status()).attempts[0].lease_id for task in (polite, stubborn)]
        assert [await status_of(lab, lease) for lease in leases] == [
            WorkflowExecutionStatus.CANCELED,
            WorkflowExecutionStatus.TERMINATED,
        ]
        assert [device.state for device in pool.devices] == ["idle", "idle"]
        assert (tmp_path / "file.cancelled").exists()


async def test_an_activity_that_blocks_harms_no_lease_and_keeps_its_device(lab: Lab, tmp_path: Path) -> None:
    """It blocks for longer than the ttl and its lease is renewed; after its cancellation nobody gets its device."""
    crib = await lab.pool(lease_ttl=TTL, max_attempts=1)
    async with lab.host(devices=[slot("a"), slot("b")], workflow="temporal", plugins=[PLUGIN]):
        first = await crib.submit(workflow="Waits", inputs={"file": str(tmp_path / "one"), "activity": "block"})
        await eventually(lambda: _exists(tmp_path / "one.begun"), bool)
        await (await crib.submit(f"sleep {1.5 * TTL}")).result()
        (tmp_path / "one").touch()
        await first.result()
        second = await crib.submit(workflow="Waits", inputs={"file": str(tmp_path / "two"), "activity": "block"})
        await eventually(lambda: _exists(tmp_path / "two.begun"), bool)
        await second.cancel()
        pool = await until_pool(crib, lambda pool: pool.leased == 0)
        assert pool.devices[0].state == "resting"
        assert (pool.devices[0].reason or "").startswith("failed once: its host did not confirm that it has ended")
        (tmp_path / "two").touch()


async def test_a_task_that_is_terminated_takes_its_workflow_along(lab: Lab, tmp_path: Path) -> None:
    """By a person, with Temporal's own tools: what runs under its lease ends all the same."""
    crib = await lab.pool(lease_ttl=TTL)
    async with lab.host(workflow="temporal", plugins=[PLUGIN]):
        task = await crib.submit(workflow="Waits", inputs={"file": str(tmp_path / "file")})
        await eventually(lambda: _exists(tmp_path / "file.begun"), bool)
        lease = (await task.status()).attempts[0].lease_id
        await lab.client.get_workflow_handle(task.id).terminate()
        await eventually(lambda: status_of(lab, lease), lambda found: found is not WorkflowExecutionStatus.RUNNING)
        await eventually(lambda: _exists(tmp_path / "file.cancelled"), bool)


async def test_a_plugin_must_not_take_a_name_of_ours(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host does not start, and says which name it is."""

    @activity.defn(name="presence")
    async def theirs() -> None: ...

    plugin = ModuleType("their_presence")
    plugin.__dict__.update(WORKFLOWS=[Looks], ACTIVITIES=[theirs])
    monkeypatch.setitem(sys.modules, "their_presence", plugin)
    await lab.pool()
    with pytest.raises(InvalidRequest, match=r"plugins: .*presence"):
        async with lab.host(workflow="temporal", plugins=["their_presence"]):
            pass


async def test_no_activity_runs_without_a_lease(lab: Lab) -> None:
    """Whoever starts a workflow on the host's queue, and whatever lease it names: one that is not held there."""
    await lab.pool()
    async with lab.host(workflow="temporal", plugins=[PLUGIN]):
        for workflow_id, reason in {
            "by-hand": "the activities of this host run under leases only",
            leased_workflow_id("task-1.1.7"): "lease task-1.1.7 is not held by this worker",
        }.items():
            with pytest.raises(WorkflowFailureError) as failed:
                await lab.client.execute_workflow(
                    "Child", "hello", id=workflow_id, task_queue=host_work_queue("lab-1"), result_type=str
                )
            refusal = failed.value.cause.__cause__
            assert isinstance(refusal, ApplicationError)
            assert (refusal.type, refusal.message, refusal.non_retryable) == ("lease_lost", reason, True)


async def test_no_workflow_outlives_its_worker_for_long(lab: Lab, tmp_path: Path) -> None:
    """One that was frozen until its lease had lapsed terminates what ran under it; of one killed, the next one does."""
    crib = await lab.pool(lease_ttl=TTL, max_attempts=5)
    file = host_file(tmp_path, "lab-1", [slot("a"), slot("b"), slot("c")], runners="workflow: temporal")
    arguments = ("worker", "--role", "host", "--config", str(file), "--plugin", PLUGIN)
    async with toolcrib(lab.client, tmp_path, *arguments) as worker:
        task = await crib.submit(workflow="Waits", inputs={"file": str(tmp_path / "file")})
        await eventually(lambda: _exists(tmp_path / "file.begun"), bool)
        worker.send_signal(signal.SIGSTOP)
        view = await until(task, lambda view: view.attempts[0].outcome == "expired")
        worker.send_signal(signal.SIGCONT)
        frozen = view.attempts[0].lease_id
        await eventually(lambda: status_of(lab, frozen), lambda found: found is WorkflowExecutionStatus.TERMINATED)
        (tmp_path / "file.begun").unlink()
        await until(task, lambda view: len(view.attempts) == 2)
        await eventually(lambda: _exists(tmp_path / "file.begun"), bool)
        killed = (await task.status()).attempts[1].lease_id
        worker.kill()
        await worker.wait()
        assert await status_of(lab, killed) is WorkflowExecutionStatus.RUNNING
        async with toolcrib(lab.client, tmp_path, *arguments):
            await eventually(lambda: status_of(lab, killed), lambda found: found is WorkflowExecutionStatus.TERMINATED)
            (tmp_path / "file").touch()
            assert await task.result() == "found"


@pytest.mark.long
async def test_a_lease_that_cannot_be_renewed_ends_its_activities_at_once(
    server_with_file: Callable[..., EmbeddedServer], tmp_path: Path
) -> None:
    """While the server is away; when it is back the workflow is terminated, and the task is tried again."""
    async with AsyncExitStack() as parts:
        server = server_with_file()
        running = await parts.enter_async_context(AsyncExitStack())
        await running.enter_async_context(server)
        client = await connect(server.address)
        crib = Toolcrib(client)
        file = host_file(tmp_path, "h", [slot("a"), slot("b")], pool="default", runners="workflow: temporal")
        arguments = ("worker", "--role", "all", "--config", str(file), "--plugin", PLUGIN)
        await parts.enter_async_context(toolcrib(client, tmp_path, *arguments))
        await until_pool(crib, lambda pool: len(pool.devices) == 2)
        await crib.pool().configure(lease_ttl=TTL)
        task = await crib.submit(workflow="Waits", inputs={"file": str(tmp_path / "file")})
        await eventually(lambda: _exists(tmp_path / "file.begun"), bool)
        lease = (await task.status()).attempts[0].lease_id
        await server.kill()
        await running.aclose()
        await eventually(lambda: _exists(tmp_path / "file.cancelled"), bool)
        (tmp_path / "file").touch()
        async with server_with_file(port=server.port):
            assert await task.result() == "found"
            lab = Lab(client, crib, tmp_path)
            await eventually(lambda: status_of(lab, lease), lambda found: found is WorkflowExecutionStatus.TERMINATED)


async def _exists(file: Path) -> bool:
    return file.exists()

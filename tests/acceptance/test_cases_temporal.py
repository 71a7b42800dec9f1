"""What Temporal does not forgive: rows E07, E09 and E11 of inputs that went wrong elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from support.huge import HUGE, SIZE
from support.lab import Lab, slot, until_pool, until_status
from support.processes import command, host_file, toolcrib
from toolcrib.client import InvalidRequest, TaskFailed, TaskRequest, Toolcrib
from toolcrib.worker.scheduler_role import scheduler_role
from toolcrib.workflows.scheduled_task import ScheduledTask


async def test_case_e07_a_scheduler_of_another_version_is_named(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that it cannot replay says so in `status`, and hides no other in `list`; the right version goes on."""
    lab = Lab(client, Toolcrib(client), tmp_path / "hosts")
    live = ScheduledTask._live

    async def other_live(self: Any) -> None:
        self._publish()
        await live(self)

    async with scheduler_role(client):
        crib = await lab.pool()
        old = await crib.submit("echo old", tags=["linux"], device_id="slot-1")
        await until_status(old, "queued")
    with monkeypatch.context() as patch:
        patch.setattr(ScheduledTask, "_live", other_live)
        async with scheduler_role(client):
            new = await crib.submit("echo new", tags=["none"])
            view = await old.status()
            code, said = await command(client, tmp_path / "cli", "status", old.id)
            listed = await crib.tasks(status="queued")
    assert (view.goal, view.tags, view.status, view.device_id) == ("echo old", ["linux"], "queued", "slot-1")
    assert view.error is not None
    assert view.error.code == "cannot_replay"
    assert view.error.message.startswith(f"the scheduler cannot replay task {old.id}: [TMPRL1100]")
    assert (code, "cannot replay" in said) == (0, True)
    assert {found.id for found in listed} == {old.id, new.id}
    async with scheduler_role(client), lab.host(devices=[slot("slot-1", tags=["linux"])]):
        assert (await old.result())["output"] == "old\n"
        await new.cancel()


async def test_case_e09_what_is_too_large_for_temporal_is_refused_or_cut(lab: Lab) -> None:
    """Goals and tags at submission, results and messages by name, errors by cutting them; nothing is tried again."""
    crib = await lab.pool()
    with pytest.raises(InvalidRequest, match=r"goal: .*3,000,000 bytes.* 131,072"):
        await crib.submit("x" * SIZE)
    with pytest.raises(InvalidRequest, match="tags"):
        await crib.submit("true", tags=["t" * 1000] * 3000)
    assert not await crib.tasks()
    ends = {"result": "the result is 3,000,002 bytes long", "error": "ValueError: xxx", "message": "message: 3000000"}
    async with lab.host(goal=HUGE):
        for goal, said in ends.items():
            task = await crib.submit(goal)
            with pytest.raises(TaskFailed) as caught:
                await task.result()
            assert caught.value.message.startswith(said)
            assert len(caught.value.message) <= 4_000
            assert len((await task.status()).attempts) == 1


async def test_case_e09_a_pool_of_large_goals_stays_small(lab: Lab) -> None:
    """A hundred queued tasks with the largest goals there may be do not hinder the pool from going on in new runs."""
    start: list[Any] = [{"max_concurrent": None}, None, 40]
    await lab.client.start_workflow("DevicePool", args=start, id="toolcrib-pool-big", task_queue="toolcrib-pools")
    crib = Toolcrib(lab.client, pool="big")
    goal = "true #" + "x" * (128 * 1024 - 6)
    tasks = await crib.submit_many([TaskRequest(goal=goal, pool="big")] * 100)
    pool = await until_pool(crib, lambda pool: pool.queued == 100)
    assert {entry.id for entry in pool.queue} == {task.id for task in tasks}
    for _ in range(30):
        await crib.pool().assign()
    runs = [run.run_id async for run in lab.client.list_workflows("WorkflowId = 'toolcrib-pool-big'")]
    assert len(runs) > 1
    assert (await crib.pool().show()).queued == 100


async def test_case_e11_a_second_worker_of_a_host_is_no_clone(lab: Lab, tmp_path: Path) -> None:
    """On one machine it is refused, and the first goes on; killed and started again at once, a host is itself."""
    crib = await lab.pool()
    host = ("worker", "--role", "host", "--config", str(host_file(tmp_path, "bench-1")))
    async with toolcrib(lab.client, tmp_path, *host) as first:
        await until_pool(crib, lambda pool: [one.state for one in pool.hosts] == ["online"])
        code, said = await command(lab.client, tmp_path / "second", *host)
        assert (code, f"process {first.pid}" in said) == (4, True)
        await (await crib.submit("true")).result()
        first.kill()
        await first.wait()
    async with toolcrib(lab.client, tmp_path, *host):
        view = await until_status(await crib.submit("true", max_attempts=1), "done")
    assert [attempt.outcome for attempt in view.attempts] == ["done"]

"""Which host a task's workflow is on: known to the pool, so that what nobody has is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.lab import Lab, until_status
from support.leased import PLUGIN
from support.processes import command
from toolcrib.client import PartlySubmitted, TaskFailed, TaskRequest, UnknownDefinition


async def test_a_workflow_that_no_host_has_is_refused(lab: Lab, tmp_path: Path) -> None:
    """With exit code 4, and nothing is created; a task that was started without the client fails by the same name."""
    crib = await lab.pool()
    async with lab.host(workflow="temporal", plugins=[PLUGIN]):
        with pytest.raises(UnknownDefinition, match="no host of pool 'lab' has the workflow 'Loks'") as refused:
            await crib.submit(workflow="Loks")
        assert refused.value.hint == "Did you mean Looks? See: toolcrib definition list --pool lab"
        with pytest.raises(UnknownDefinition, match="'Looks@2'"):
            await crib.submit(workflow="Looks@2")
        assert (await crib.pool().show()).queued == 0
        assert await crib.tasks() == []
        given = {"workflow": "Loks", "pool": "lab"}
        await lab.client.start_workflow("ScheduledTask", given, id="by-hand", task_queue="toolcrib-tasks")
        with pytest.raises(TaskFailed) as failed:
            await crib.task("by-hand").result()
        assert failed.value.error_code == "unknown_definition"
        code, said = await command(lab.client, tmp_path, "submit", "--workflow", "Loks", "--pool", "lab")
        assert (code, said.splitlines()[0]) == (4, "error: no host of pool 'lab' has the workflow 'Loks'")
        code, said = await command(lab.client, tmp_path, "definition", "show", "Looks", "--pool", "lab")
        assert (code, said.split()) == (0, ["workflow", "Looks", "version", "-", "hosts", "lab-1"])


async def test_a_task_goes_where_its_version_is(lab: Lab) -> None:
    """`name@version` pins it, `name` alone takes any; a task whose host is busy waits for it, and says so."""
    crib = await lab.pool()
    await lab.register_only("a", workflows=["smoke@1"])
    await lab.register_only("b", workflows=["smoke@2", "login@1"])
    pinned, any_ = await crib.submit(workflow="smoke@2"), await crib.submit(workflow="smoke")
    assert [(await until_status(task, "assigned")).host_id for task in (pinned, any_)] == ["b", "a"]
    await lab.register_only("c", workflows=[])
    waits = await crib.submit(workflow="login")
    reason = (await waits.status()).pending_reason
    assert reason is not None
    assert (reason.code, reason.text) == ("all_busy", "the one device that fits is busy; only b can run login")
    several = [TaskRequest(workflow=f"smoke@{version}", pool="lab") for version in (3, 4, 5)]
    with pytest.raises(PartlySubmitted, match=r"3 of 3 requests were refused: .*'smoke@5'") as refused:
        await crib.submit_many(several)
    assert refused.value.error_code == "unknown_definition"

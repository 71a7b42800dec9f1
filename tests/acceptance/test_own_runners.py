"""Runners of the customer's own, installed beside toolcrib and named in a host's file. Rows S1-33, S1-34 and S1-37."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.lab import Lab, eventually, until_status
from support.runners import CONTROLLED, controlled
from toolcrib.activities.context import InfrastructureFailed, RunFailed
from toolcrib.client import TaskFailed


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name under which an installed package brings a goal runner and a workflow runner."""
    info = tmp_path / "installed" / "acme-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    points = "".join(f"[toolcrib.{kind}_runners]\nacme-bench = {CONTROLLED}\n" for kind in ("goal", "workflow"))
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(info.parent)
    return "acme-bench"


async def test_each_entry_point_is_reached_exactly_once(lab: Lab, acme: str) -> None:
    """A goal and a workflow, on the device that was leased; what the run comes to is the task's, and is not retried.

    A failed work is final and no fault of its device. When the runner says that the infrastructure failed, the attempt
    ends, and that counts against the device.
    """
    crib = await lab.pool(max_attempts=1)
    controlled.finish("measure the board", {"volts": 5})
    controlled.finish("burn-in@2", "stable")
    controlled.fail("measure a broken board", RunFailed("no current flows"))
    controlled.fail("measure nothing", InfrastructureFailed("the relay is stuck"))
    async with lab.host(goal=acme, workflow=acme):
        goal = await crib.submit("measure the board")
        workflow = await crib.submit(workflow="burn-in@2", inputs={"hours": 3})
        assert await goal.result() == {"volts": 5}
        assert await workflow.result() == "stable"
        assert (controlled.started("measure the board"), controlled.started("burn-in@2")) == (1, 1)
        assert controlled.inputs["burn-in@2"] == {"hours": 3}
        for task, work in ((goal, "measure the board"), (workflow, "burn-in@2")):
            context = await controlled.context(work)
            assert (context.lease.task_id, context.device.id, context.attempt) == (task.id, "slot-1", 1)

        with pytest.raises(TaskFailed, match="no current flows"):
            await (await crib.submit("measure a broken board", max_attempts=3)).result()
        assert controlled.started("measure a broken board") == 1
        await eventually(lambda: crib.pool().device("lab-1/slot-1"), lambda device: device.state == "idle")

        blamed = await until_status(await crib.submit("measure nothing"), "failed")
        assert controlled.started("measure nothing") == 1
        reason = "the infrastructure failed: the relay is stuck"
        assert [(one.outcome, one.reason) for one in blamed.attempts] == [("expired", reason)]
        device = await eventually(lambda: crib.pool().device("lab-1/slot-1"), lambda one: one.state == "resting")
        assert (device.reason or "").startswith(f"failed once: {reason}")


async def test_functions_by_their_names(lab: Lab) -> None:
    """With the runner `python`, as workflows and as goals; what one raises is the error of its task."""
    crib = await lab.pool()
    async with lab.host(goal="python", workflow="python"):
        workflow = await crib.submit(workflow="json:dumps", inputs={"obj": {"b": 1, "a": [None]}, "sort_keys": True})
        goal = await crib.submit('json:loads {"s": "[1, 2]"}')
        wrong = await crib.submit(workflow="json:loads", inputs={"s": "[1, 2"})
        assert await workflow.result() == '{"a": [null], "b": 1}'
        assert await goal.result() == [1, 2]
        with pytest.raises(TaskFailed, match=r"^JSONDecodeError: Expecting ',' delimiter") as caught:
            await wrong.result()
        assert caught.value.result["output"].startswith("Traceback (most recent call last):\n")

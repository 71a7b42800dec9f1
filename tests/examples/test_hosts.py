"""The examples of hosts, with the host files that their pages name."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support.lab import Lab
from support.processes import toolcrib
from toolcrib.client import TaskFailed, TaskHandle, TaskView

EXAMPLES = Path(__file__).parents[2] / "examples"


@asynccontextmanager
async def host(lab: Lab, tmp_path: Path, name: str) -> AsyncIterator[None]:
    """Run the host of an example."""
    file = EXAMPLES / name / "host.yaml"
    async with toolcrib(lab.client, tmp_path, "worker", "--role", "host", "--config", str(file)):
        yield


def kept(tmp_path: Path, task: TaskHandle, name: str) -> str:
    """Return a file that the first attempt of a task has left."""
    return (tmp_path / "home" / "artifacts" / task.id / "1" / name).read_text(encoding="utf-8")


async def test_an_agent(lab: Lab, tmp_path: Path) -> None:
    """It gets the goal as it is, says how far it is, keeps its report; and what it cannot do fails the task."""
    async with host(lab, tmp_path, "agent"):
        goal = 'look at the "door"\n of Ann\'s $HOME, then wait 0.5, then count windows'
        task = await lab.crib.submit(goal, driver_type="agent")
        seen = [view async for view in task.watch()]
        view = await task.status()
        assert view.status == "done", view.error
        found = ['there is the "door"\n of Ann\'s $HOME', "waited 0.5 s", "windows has 7 letters"]
        assert kept(tmp_path, task, "report.txt") == "".join(f"{line}\n" for line in found)
        assert view.result["output"] == "".join(f"{view.device_id}: {line}\n" for line in found)
        assert "wait 0.5" in {view.message for view in seen}

        failed = await lab.crib.submit("look at you, then fly", driver_type="agent")
        said = "failed at step 2 of 2: I do not know how to fly; I can look at, count, wait"
        with pytest.raises(TaskFailed, match=f"^command exited with code 1: {said}$"):
            await failed.result()
        assert len((await failed.status()).attempts) == 1


async def test_a_suite_of_pytests(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs on the slot, its JUnit file is kept, and the task is what the suite is: done or failed."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    suite = EXAMPLES / "pytest" / "suite"
    async with host(lab, tmp_path, "pytest"):

        async def run(only: str) -> tuple[TaskHandle, TaskView]:
            goal = f"pytest {suite} -k '{only}' --junitxml=$TOOLCRIB_ARTIFACTS/junit.xml"
            task = await lab.crib.submit(goal, driver_type="bench", name=only)
            async with asyncio.timeout(60):
                while (view := await task.status()).finished_at is None:
                    await asyncio.sleep(0.05)
            return task, view

        good, bad = await asyncio.gather(run("not crane"), run("crane"))
    assert good[1].status == "done", good[1].error
    assert good[1].progress == 1.0
    assert bad[1].error is not None
    assert "1 failed, 3 deselected" in bad[1].error.message
    for (task, _), counted in ((good, ("3", "0")), (bad, ("1", "1"))):
        found = ElementTree.fromstring(kept(tmp_path, task, "junit.xml")).find("testsuite")
        assert found is not None
        assert (found.get("tests"), found.get("failures")) == counted

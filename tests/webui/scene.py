"""A lab in which there is something to see: tasks that wait, run, are done and have failed, on two hosts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from support.lab import Lab, eventually, slot, until, until_begun, until_status
from support.runners import CONTROLLED, controlled
from support.servers import connect
from toolcrib.activities.context import LeaseContext
from toolcrib.client import Group, TaskHandle, Toolcrib
from toolcrib.scheduling.names import host_workflow_id
from toolcrib.worker.embedded import EmbeddedServer
from toolcrib.worker.scheduler_role import scheduler_role

GROUP: Final = Group("release-7", "Release 7")
POOL: Final = "default"

SMOKE: Final = "task-smoke-test"
SOAK: Final = "task-soak-test"
LOGIN: Final = "task-login-test"
FLASH: Final = "task-flash-board"
STATUSES: Final = ("done", "failed", "queued", "dispatched")
"""Of these four."""


@dataclass(frozen=True)
class Scene:
    """The lab, and what can be changed in it."""

    lab: Lab
    url: str
    """Of the Web UI."""
    soak: TaskHandle
    work: LeaseContext
    """What the work of the task `SOAK` can say."""

    async def go_on(self, progress: float, message: str) -> None:
        """Have the running task say how far it is, and wait until that is known."""
        self.work.progress(progress, message)
        await until(self.soak, lambda view: view.progress == progress)

    async def settled(self) -> None:
        """Wait until lists show all as it is described at `scene`."""
        queries = [f"ToolcribGroup = '{GROUP.id}' AND ToolcribStatus = '{status}'" for status in STATUSES]
        queries += [
            f"ToolcribStatus = '{status}' AND ExecutionStatus = 'Running'" for status in ("queued", "dispatched")
        ]
        queries += ["WorkflowType = 'Host' AND ExecutionStatus = 'Completed'", "ExecutionStatus = 'Terminated'"]
        for query in queries:
            await eventually(partial(self.lab.client.count_workflows, query), lambda found: found.count == 1)


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    """Run server, scheduler and hosts, with a task of `GROUP` in each state; `folder` is for their files.

    `SMOKE` is done, and `SOAK` runs on lab-1/slot-1; `LOGIN` has failed on lab-2; `FLASH` waits for a device that
    is not there. The host lab-3 has gone, and a task that ran elsewhere was terminated.
    """
    async with EmbeddedServer(port=0, ui_port=0) as server:
        client = await connect(server.address)
        async with scheduler_role(client):
            lab = Lab(client, Toolcrib(client), folder)
            async with lab.host("lab-3", pool=POOL):
                await until_begun(client, host_workflow_id("lab-3"))
            async with (
                lab.host("lab-2", [slot("slot-1"), slot("slot-2")], pool=POOL),
                lab.host("lab-1", [slot("slot-1", tags=["android-14"])], pool=POOL, goal=CONTROLLED),
            ):
                soak, work = await _tasks(lab)
                shown = Scene(lab, server.ui_url, soak, work)
                await shown.go_on(0.4, "round 4 of 10")
                await _gone(lab)
                await shown.settled()
                yield shown
                controlled.finish(SOAK)
                await soak.result()


async def _tasks(lab: Lab) -> tuple[TaskHandle, LeaseContext]:
    crib = lab.crib
    controlled.finish(SMOKE)
    smoke = await crib.submit(SMOKE, name="smoke test", key="smoke-test", tags=["android-14"], group=GROUP)
    await smoke.result()
    soak = await crib.submit(SOAK, name="soak test", key="soak-test", tags=["android-14"], group=GROUP)
    await until_status(soak, "dispatched")
    login = await crib.submit(
        "echo 2 tests failed; exit 1", name="login test", key="login-test", host_id="lab-2", group=GROUP
    )
    await until_status(login, "failed")
    await crib.submit("flash board.img", name="flash board", key="flash-board", tags=["usb"], group=GROUP)

    async def work() -> list[LeaseContext]:
        return [context for goal, context in controlled.calls if goal == SOAK]

    return soak, (await eventually(work, bool))[-1]


async def _gone(lab: Lab) -> None:
    """Leave a task behind that Temporal was told to end, so that its status is that of a running one for ever."""
    elsewhere = await lab.crib.external("report").start()
    await lab.client.get_workflow_handle(elsewhere.id).terminate()

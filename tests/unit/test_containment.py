"""Works that misbehave, under each runner that starts processes: the lease ends, and nothing of them is left."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from uuid import uuid4

import pytest

from support.guarded import MARK, marked
from toolcrib.activities.context import LeaseContext
from toolcrib.activities.dispatcher import TaskDispatcher
from toolcrib.activities.runners import GoalRunner
from toolcrib.activities.runners.exec import ExecRunner
from toolcrib.activities.runners.python import PythonGoals
from toolcrib.activities.runners.shell import ShellRunner
from toolcrib.scheduling.messages import Assignment, Report, ReportOutcome
from toolcrib.worker.conformance import leased
from toolcrib.worker.conformance.leases import another

ENDS = {
    "exit 200": 200,
    "kill -KILL $$": 137,
    "kill -40 $$": 168,
    "exec >&- 2>&-; exit 4": 4,
    "cat; read line; exit 5": 5,
    'rm -rf "$PWD"; exit 6': 6,
    "printf 'a\\377\\200'; exit 7": 7,
    "setsid sh -c 'trap \"\" TERM HUP; sleep 300 & sleep 300' & exit 8": 8,
    "ulimit -v 100000; tail /dev/zero || exit 9": 9,
}
HANGS = (
    "sleep 300",
    "trap '' TERM INT HUP; while :; do sleep 300; done",
    "kill -STOP $$",
    "setsid sh -c 'trap \"\" TERM; sleep 300' & wait",
    "trap '' TERM; exec yes",
    "exec >&- 2>&-; sleep 300",
)
AS_FUNCTION = "import os\ndef become(script): os.execv('/bin/sh', ['sh', '-c', script])\n"


class Place:
    """Leases whose works carry a mark, and a runner that makes a shell of each goal."""

    def __init__(self, kind: str, context: LeaseContext) -> None:
        self.mark = uuid4().hex
        self._kind = kind
        self._context = context

    def _runner(self) -> GoalRunner:
        if self._kind == "exec":
            return ExecRunner(["sh", "-c", "{goal}"])
        return ShellRunner() if self._kind == "shell" else PythonGoals()

    async def run(self, scripts: Iterable[str], limit: float) -> list[Report]:
        """Run scripts at once, each with its limit in seconds, as a host does."""
        return await asyncio.gather(*(self.one(script, limit, self.lease()) for script in scripts))

    def lease(self) -> LeaseContext:
        """Return a new lease."""
        context = another(self._context, uuid4().int)
        context.environment[MARK] = self.mark
        return context

    async def one(self, script: str, limit: float, context: LeaseContext) -> Report:
        """Run one script under a lease."""
        goal = script if self._kind != "python" else f"containment:become {json.dumps({'script': script})}"
        work = Assignment(task_id=context.task_id, attempt=1, goal=goal)
        return await TaskDispatcher(self._runner(), None).dispatch(work, context, limit)


@pytest.fixture(params=["shell", "exec", "python"])
async def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Place]:
    """Have a guard; when the test is over, the host has gone on, and nothing of the works is left."""
    (tmp_path / "containment.py").write_text(AS_FUNCTION)
    monkeypatch.syspath_prepend(tmp_path)
    async with leased() as context:
        place = Place(request.param, context)
        yield place
        assert marked(place.mark) == []
        (last,) = await place.run(["exit 3"], 60.0)
        assert (last.result["exit_code"], last.result["output"]) == (3, "")


async def test_works_that_end_badly(place: Place) -> None:
    """By a code or a signal, without output or folder, out of memory, reading, with daemons in sessions elsewhere."""
    reports = await place.run(ENDS, 60.0)
    assert [report.result and report.result["exit_code"] for report in reports] == list(ENDS.values())
    assert {report.outcome for report in reports} == {ReportOutcome.FAILED}
    assert all(report.error and report.error.hint for report in reports)


async def test_works_that_do_not_end(place: Place) -> None:
    """They hang, ignore signals, stop themselves, leave their session, flood or close their output: until the limit."""
    reports = await place.run(HANGS, 1.0)
    assert [report.error and report.error.code for report in reports] == ["time_limit"] * len(HANGS)


async def test_a_folder_that_is_gone(place: Place) -> None:
    """A work whose folder is not there fails, and the error names the folder."""
    context = place.lease()
    shutil.rmtree(context.folder)
    report = await place.one("true", 60.0, context)
    assert report.outcome is ReportOutcome.FAILED
    assert report.error is not None
    assert str(context.folder) in report.error.message

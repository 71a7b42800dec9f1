"""What tasks are given to run: rows C01 to C15 of inputs that went wrong elsewhere.

C03, C05 and the rest of C13 are tests of the runners, in tests/unit.
"""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from pathlib import Path

import pytest

from support.guarded import MARK, noting_spawns, running_lab, until
from support.lab import Lab, eventually, slot, until_pool
from support.leases import lease_context
from support.processes import command, host_file, toolcrib
from toolcrib.activities.context import RunFailed
from toolcrib.activities.progress import ProgressReporter
from toolcrib.activities.runners.shell import ShellRunner
from toolcrib.client import TaskFailed, TaskView, Toolcrib
from toolcrib.scheduling.messages import Progress

EXEC = {
    "missing": "[adbb, devices]",
    "argument": '[echo, "--goal={goal}"]',
    "crlf": "[./crlf]",
    "no-shebang": "[./no-shebang]",
    "input": "[wc, -c]",
}


async def _failed(crib: Toolcrib, goal: str, driver_type: str) -> TaskView:
    """Return the view of a task that has failed, at its first attempt though it might have had three."""
    task = await crib.submit(goal, driver_type=driver_type, max_attempts=3)
    with pytest.raises(TaskFailed):
        await asyncio.wait_for(task.result(), 60)
    view = await task.status()
    assert [attempt.outcome for attempt in view.attempts] == ["failed"]
    return view


async def test_case_c01_c13_c15_what_cannot_start(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too large for an argument, not there, no program: failed at once, with the reason, and the device is free.

    Host and client are in other time zones than the server: a task sees its host's, and all times agree, in UTC.
    """
    (tmp_path / "crlf").write_bytes(b"#!/bin/sh\r\necho hello\r\n")
    (tmp_path / "no-shebang").write_text("echo hello\n")
    for script in ("crlf", "no-shebang"):
        (tmp_path / script).chmod(0o755)
    own = ", ".join(f"{kind}: {{goal: exec, exec: {words}}}" for kind, words in EXEC.items())
    devices = [slot(kind, driver_type=kind) for kind in ("local", *EXEC)]
    file = host_file(tmp_path, "lab-1", devices, runners=f"goal: shell, by_driver_type: {{{own}}}")
    crib = await lab.pool()
    monkeypatch.setenv("PATH", f"/nowhere:{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    async with toolcrib(lab.client, tmp_path, "worker", "--role", "host", "--config", str(file)):
        large = "x" * 131_072
        said = {
            "missing": f"there is no such command in PATH (/nowhere:{tmp_path}:/usr/bin:/bin)",
            "argument": "with the goal, an argument has 131,079 bytes, and the limit is 131,071",
            "crlf": "its lines end as on Windows, and so the interpreter that the first one names is not found",
            "no-shebang": "it is neither a program nor a script",
        }
        for kind, reason in said.items():
            error = (await _failed(crib, large, kind)).error
            assert error is not None
            assert (error.code, error.message.partition(": ")[2]) == ("could_not_start", reason)
        error = (await _failed(crib, "/etc/passwd", "local")).error
        assert ((error and error.message) or "").startswith("command exited with code 126")
        assert (await (await crib.submit(large, driver_type="input")).result())["output"] == "131072\n"
        log = (tmp_path / "log").read_text()
        assert all(f"{place}" in log for place in ("adbb", "goals will fail"))

        task = await crib.submit("date +%Z%z; TZ=Asia/Tokyo date +%Z%z", driver_type="local")
        assert (await task.result())["output"] == "+0545+0545\nJST+0900\n"
        monkeypatch.setenv("TZ", "America/New_York")
        _, shown = await command(lab.client, tmp_path / "cli", "status", task.id, "-o", "json")
        times = [json.loads(shown)[name] for name in ("created_at", "started_at", "finished_at")]
        assert times == sorted(times)
        assert all(time.endswith("Z") for time in times)
        assert abs(datetime.now().astimezone() - datetime.fromisoformat(times[-1])).total_seconds() < 600
        await until_pool(crib, lambda pool: {one.state for one in pool.devices} == {"idle"})


@pytest.mark.parametrize("last", ["sleep 600", "kill -STOP $$"], ids=["c07", "c07_stopped"])
async def test_case_c07_c09_a_tree_that_does_not_want_to_end(
    last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ignores every signal, has children, and one has left its session: cancelled, all is gone within the grace."""
    goal = f"""
    trap '' TERM INT HUP
    setsid sh -c 'trap "" TERM; touch up; sleep 300' >/dev/null 2>&1 </dev/null &
    sleep 600 & sleep 600 & {last}
    """
    async with running_lab() as lab:
        context, spawned = lease_context(lab.guard, tmp_path), noting_spawns(lab.guard, monkeypatch)
        context.environment[MARK] = lab.mark
        running = asyncio.create_task(ShellRunner().run(goal, context))
        await spawned.wait()
        await until((context.folder / "up").exists)
        running.cancel()
        done, _ = await asyncio.wait({running}, timeout=ShellRunner.grace + 2)
        assert done
        assert lab.left() == []


async def test_case_c11_progress_with_carriage_returns(tmp_path: Path) -> None:
    """Shown while it runs, before any line ends; a few times a second, not at each of 400; and said without returns."""
    goal = r"""
    echo ::toolcrib percent
    i=0; while [ $i -le 400 ]; do printf 'copy %3d%%\r' $((i/4)); i=$((i+1)); sleep 0.002; done
    until [ -e go ]; do sleep 0.01; done; printf '\n[=====>   ]\rno room\n'; exit 1
    """
    sent: list[Progress] = []

    async def send(report: Progress) -> None:
        sent.append(report)

    async def values() -> list[float]:
        return [report.value for report in sent]

    async with running_lab() as lab:
        context = lease_context(lab.guard, tmp_path)
        context.reporter = ProgressReporter(context.lease.id, send)
        running = asyncio.create_task(ShellRunner().run(goal, context))
        await eventually(values, lambda found: bool(found) and found[-1] == 1.0)
        (context.folder / "go").touch()
        with pytest.raises(RunFailed, match=r"^command exited with code 1: no room$"):
            await running
    assert len(sent) < 40

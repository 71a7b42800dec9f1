"""How runs of definitions end before their time: nothing of a step outlives its lease."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from temporalio.client import WorkflowExecutionStatus

from support.definitions import put, run_of
from support.lab import Lab, eventually, slot, until, until_pool
from support.processes import host_file, toolcrib
from toolcrib.client import TaskCancelled, TaskFailed

TTL = 3.0
NOTE = 'echo $$ >>"$NOTES"; '


def pids(notes: Path) -> list[int]:
    """Return the ids of the processes that have written themselves down."""
    return [int(line) for line in notes.read_text().split()] if notes.exists() else []


def alive(pid: int) -> bool:
    """Return whether there is a process of that id."""
    return Path(f"/proc/{pid}").exists()


async def begun(notes: Path, number: int = 1) -> int:
    """Return the id of a step's process, as soon as so many have begun."""

    async def found() -> list[int]:
        return pids(notes)

    return (await eventually(found, lambda found: len(found) >= number))[number - 1]


def put_long(folder: Path, name: str = "long") -> Path:
    """Put a definition into the folder whose second step does not end by itself, and return where it notes that."""
    notes = folder / "notes"
    long = {"run": NOTE + "echo still at it; sleep 600", "env": {"NOTES": str(notes)}}
    put(folder, name, {"run": f"echo first >>{folder}/first"}, long, {"run": f"touch {folder}/third"})
    return notes


async def test_a_cancelled_task_ends_its_step(lab: Lab, tmp_path: Path) -> None:
    """In the middle of it: its processes are gone, its run is cancelled, and its device is free."""
    notes, crib = put_long(tmp_path), await lab.pool()
    async with lab.host(workflow="definition", definitions=tmp_path):
        task = await crib.submit(workflow="long")
        pid = await begun(notes)
        view = await until(task, lambda view: view.progress is not None and view.progress > 0)
        assert (view.progress, view.message) == (1 / 3, "step 2 of 3: s2")
        await task.cancel()
        with pytest.raises(TaskCancelled):
            await task.result()
        pool = await until_pool(crib, lambda pool: pool.leased == 0)
        assert pool.devices[0].state == "idle"
        assert not alive(pid)
        assert (await run_of(lab.client, task)).status is WorkflowExecutionStatus.CANCELED
    assert not (tmp_path / "third").exists()


async def test_time_limits(lab: Lab, tmp_path: Path) -> None:
    """The task's ends the run, a step's ends one attempt; the next one begins when nothing is left of it."""
    notes, tries = put_long(tmp_path), tmp_path / "tries"
    stubborn = 'trap "" TERM; for p in $(cat "$NOTES"); do test ! -e /proc/$p || echo $p >>"$NOTES.overlap"; done; '
    step = {"run": stubborn + NOTE + "while :; do sleep 1; done", "env": {"NOTES": str(tries)}}
    tries.touch()
    put(tmp_path, "slow", step | {"timeout": "1s", "retry": {"max_attempts": 2}})
    crib = await lab.pool()
    async with lab.host(devices=[slot("a"), slot("b")], workflow="definition", definitions=tmp_path):
        task, slow = await crib.submit(workflow="long", timeout=2), await crib.submit(workflow="slow")
        with pytest.raises(TaskFailed, match="the work took longer than 2 s") as late:
            await task.result()
        last = late.value.result["steps"][-1]
        assert (last["id"], last["outcome"], last["stdout"]) == ("s2", "failed", "still at it\n")
        assert not alive(await begun(notes))
        assert (await run_of(lab.client, task)).status is WorkflowExecutionStatus.CANCELED
        with pytest.raises(TaskFailed, match="step s1 failed: it took longer than 1 s") as failed:
            await slow.result()
    assert failed.value.result["steps"][0]["attempts"] == 2
    assert len(pids(tries)) == 2
    assert not (tmp_path / "tries.overlap").exists()
    assert not any(map(alive, pids(tries)))


async def test_the_death_of_the_guard_is_no_verdict(lab: Lab, tmp_path: Path) -> None:
    """Its processes die with it; the attempt counts against the host, and the task waits for another one."""
    notes, crib = put_long(tmp_path), await lab.pool()
    async with lab.host(workflow="definition", definitions=tmp_path) as agent:
        task = await crib.submit(workflow="long")
        pid = await begun(notes)
        os.kill(agent.guard.pid, signal.SIGKILL)
        view = await until(task, lambda view: view.attempts[0].outcome is not None)
        await eventually(lambda: _gone(pid), bool)
        assert (view.attempts[0].outcome, view.error) == ("expired", None)
        assert "died, its work was killed" in (view.attempts[0].reason or "")


async def test_a_lease_that_is_lost_or_killed_ends_its_run(lab: Lab, tmp_path: Path) -> None:
    """Of a worker that was frozen past its lease, and of one that was killed; each attempt starts it afresh."""
    notes = put_long(tmp_path)
    crib = await lab.pool(lease_ttl=TTL, max_attempts=5)
    file = host_file(tmp_path / "host", "lab-1", [slot("a"), slot("b"), slot("c")], runners="workflow: definition")
    file.write_text(f"{file.read_text()}\n  definitions: {tmp_path}\n", encoding="utf-8")
    arguments = ("worker", "--role", "host", "--config", str(file))

    async def status_of(attempt: int) -> WorkflowExecutionStatus | None:
        return (await run_of(lab.client, task, attempt)).status

    async with toolcrib(lab.client, tmp_path / "host", *arguments) as worker:
        task = await crib.submit(workflow="long")
        frozen = await begun(notes)
        worker.send_signal(signal.SIGSTOP)
        await until(task, lambda view: view.attempts[0].outcome == "expired")
        assert not alive(frozen)
        worker.send_signal(signal.SIGCONT)
        # Its step fails when the processes are killed, which may be noticed before its end is ordered.
        await eventually(lambda: status_of(1), lambda status: status is not WorkflowExecutionStatus.RUNNING)
        killed = await begun(notes, 2)
        os.kill(worker.pid, signal.SIGKILL)
        await worker.wait()
        await eventually(lambda: _gone(killed), bool)
        async with toolcrib(lab.client, tmp_path / "host", *arguments):
            await begun(notes, 3)
            assert await status_of(2) is not WorkflowExecutionStatus.RUNNING
            assert await status_of(3) is WorkflowExecutionStatus.RUNNING
            await task.cancel()
            with pytest.raises(TaskCancelled):
                await task.result()
    assert (tmp_path / "first").read_text().split() == ["first"] * 3


async def _gone(pid: int) -> bool:
    return not alive(pid)

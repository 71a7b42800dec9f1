"""The goal runner `shell`, with real shells under a real guard."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.guarded import MARK, Lab, noting_spawns, open_files, running_lab, until
from support.leases import lease_context
from toolcrib.activities.context import LeaseContext, RunFailed
from toolcrib.activities.guard import SpawnFailed
from toolcrib.activities.progress import ProgressReporter
from toolcrib.activities.runners.shell import ShellRunner
from toolcrib.scheduling.messages import Progress


@asynccontextmanager
async def _lease(tmp_path: Path) -> AsyncIterator[tuple[Lab, LeaseContext]]:
    async with running_lab() as lab:
        context = lease_context(lab.guard, tmp_path)
        context.environment[MARK] = lab.mark
        yield lab, context


async def _run(goal: str, tmp_path: Path) -> Any:
    async with _lease(tmp_path) as (_, context):
        return await ShellRunner().run(goal, context)


async def _failed(goal: str, tmp_path: Path) -> RunFailed:
    with pytest.raises(RunFailed) as caught:
        await _run(goal, tmp_path)
    assert caught.value.error_code == "task_failed"
    assert caught.value.hint
    return caught.value


async def test_result_of_success(tmp_path: Path) -> None:
    """Exit code 0 gives the output of both streams; the goal has the lease's folder and environment, and no input."""
    goal = f"echo one; echo two >&2; pwd; cat; [ -n \"${MARK}\" ] && printf 'It'\"'\"'s a \\\\ %s' é"
    result = await _run(goal, tmp_path)
    assert result == {"exit_code": 0, "output": f"one\ntwo\n{tmp_path}/work\nIt's a \\ é", "omitted_bytes": 0}


@pytest.mark.parametrize(
    ("goal", "code", "message"),
    [
        ("echo fine; exit 3", 3, "command exited with code 3: fine"),
        ("exit 3", 3, "command exited with code 3"),
        ("printf 'last\\n\\n  \\n'; exit 1", 1, "command exited with code 1: last"),
        ("printf 'copy 1%%\\rcopy\\t2%%\\r'; exit 1", 1, "command exited with code 1: copy 2%"),
        ("printf '\\033[31mred\\033[0m'; exit 1", 1, "command exited with code 1: [31mred[0m"),
        ("echo dying; kill -KILL $$", 137, "command was killed by SIGKILL: dying"),
        ("sh -c 'kill -TERM $$'; exit $?", 143, "command exited with code 143: Terminated"),
        ("kill -40 $$", 168, "command was killed by signal 40"),
    ],
)
async def test_failure_says_how_and_what_was_said_last(goal: str, code: int, message: str, tmp_path: Path) -> None:
    """A failure names exit code or signal and the last line with something on it, and carries the result."""
    error = await _failed(goal, tmp_path)
    assert error.message == message
    assert error.result["exit_code"] == code


@pytest.mark.parametrize(("goal", "code"), [("no-such-thing", 127), ("/etc/passwd", 126)])
async def test_shell_says_itself_what_it_cannot_run(goal: str, code: int, tmp_path: Path) -> None:
    """Commands that are missing or not executable end with the shell's own 127 and 126."""
    assert (await _failed(goal, tmp_path)).result["exit_code"] == code


async def test_long_message_is_cut(tmp_path: Path) -> None:
    """Of a long last line, the message of a failure has the end, in 200 characters."""
    error = await _failed("head -c 5000 /dev/zero | tr '\\0' x; echo END; exit 1", tmp_path)
    said = error.message.removeprefix("command exited with code 1: ")
    assert said == "…" + "x" * 196 + "END"


async def test_lines_of_progress_are_reported_and_not_kept(tmp_path: Path) -> None:
    """The newest one is what the lease tells; neither the output nor a failure's last line is one of them."""
    goal = "echo begun; for n in 1 2 3; do echo ::toolcrib progress $n/0; echo ::toolcrib progress $((n*30))% $n; done"
    async with _lease(tmp_path) as (_, context):
        with pytest.raises(RunFailed) as caught:
            await ShellRunner().run(f"{goal}; echo ended; echo ::toolcrib progress 1 all >&2; exit 3", context)
        assert isinstance(context.reporter, ProgressReporter)
        assert context.reporter.newest == Progress(lease_id="task-1.1.7", value=1.0, message="all")
    assert caught.value.message == "command exited with code 3: ended"
    refused = [f"::toolcrib progress {n}/0\ntoolcrib: progress: '{n}/0' is no number" for n in (1, 2, 3)]
    assert caught.value.result["output"].splitlines() == ["begun", *"\n".join(refused).splitlines(), "ended"]


async def test_goal_of_any_length(tmp_path: Path) -> None:
    """A goal may be longer than one argument may be."""
    result = await _run("# " + "long " * 40_000 + "\necho ran", tmp_path)
    assert result["output"] == "ran\n"


async def test_case_c05_any_amount_of_output_in_flat_memory(tmp_path: Path) -> None:
    """300 MB of output and a line of 5 MB never block the command; the worker keeps the last 8 KiB and the count."""
    goal = "yes | head -c 300000000; head -c 5000000 /dev/zero | tr '\\0' y; echo; echo LAST-LINE >&2; exit 3"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = await _failed(goal, tmp_path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000
    assert error.message == "command exited with code 3: LAST-LINE"
    assert error.result["exit_code"] == 3
    assert len(error.result["output"]) == 8192
    assert error.result["omitted_bytes"] + 8192 == 305_000_000 + len("\nLAST-LINE\n")


async def test_output_begins_with_a_whole_character(tmp_path: Path) -> None:
    """What is kept of long output begins with a whole character, and all bytes are accounted for."""
    result = await _run("printf 'x%.0s' 1 2; i=0; while [ $i -lt 4000 ]; do printf '€'; i=$((i+1)); done", tmp_path)
    assert set(result["output"]) == {"€"}
    assert len(result["output"].encode()) + result["omitted_bytes"] == 12_002
    assert 8190 <= len(result["output"].encode()) <= 8192


async def test_output_that_is_not_text(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are replaced, also where the kept part begins."""
    result = await _run("printf 'a\\377\\200b'", tmp_path)
    assert result["output"] == "a��b"


async def test_long_output_that_is_not_text(tmp_path: Path) -> None:
    """Of long output without any whole character no more is left out than of text."""
    result = await _run("head -c 20000 /dev/zero | tr '\\0' '\\200'", tmp_path)
    assert result["omitted_bytes"] == 20_000 - 8192 + 3
    assert set(result["output"]) == {"�"}


async def _up(goal: str, lab: Lab, context: LeaseContext, monkeypatch: pytest.MonkeyPatch) -> asyncio.Task[Any]:
    """Run a goal until it has made the file `up`, and its runner knows that it was started."""
    spawned = noting_spawns(lab.guard, monkeypatch)
    running = asyncio.create_task(ShellRunner().run(goal, context))
    await spawned.wait()
    await until((context.folder / "up").exists)
    return running


async def test_cancel_ends_the_tree_and_keeps_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancelled, the runner gives up only when nothing of the work is left, and keeps what was printed until then."""
    goal = """
    trap 'echo ending; exit 0' TERM
    echo begun
    setsid sh -c 'trap "" TERM; touch up; sleep 300' &
    wait
    """
    async with _lease(tmp_path) as (lab, context):
        running = await _up(goal, lab, context, monkeypatch)
        running.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert time.monotonic() - began < 3
        assert lab.left() == []
        assert context.partial_result == {"exit_code": None, "output": "begun\nending\n", "omitted_bytes": 0}


async def test_second_cancel_leaves_nothing_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is cancelled, the runner does not give up before nothing of the work is left."""
    async with _lease(tmp_path) as (lab, context):
        running = await _up("trap '' TERM; touch up; sleep 300; sleep 300", lab, context, monkeypatch)
        running.cancel()
        while not running.done():
            await asyncio.sleep(0.01)
            running.cancel()
        assert running.cancelled()
        assert lab.left() == []


async def test_cancel_at_any_moment_of_the_start_leaves_nothing(tmp_path: Path) -> None:
    """Cancelled while its work is being started, the runner leaves no process, and a result without an exit code."""
    async with _lease(tmp_path) as (lab, context):
        for turns in range(10):
            running = asyncio.create_task(ShellRunner().run("sleep 300", context))
            for _ in range(1 + turns):
                await asyncio.sleep(0)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert lab.left() == []
            assert context.partial_result == {"exit_code": None, "output": "", "omitted_bytes": 0}


async def test_stranger_holding_the_pipe_delays_nothing(tmp_path: Path) -> None:
    """When the work is gone the run ends, although a process outside its tree still has its output open."""
    goal = "echo $$ >pid; mv pid up; until [ -e go ]; do sleep 0.02; done; echo done"
    async with _lease(tmp_path) as (_, context):
        running = asyncio.create_task(ShellRunner().run(goal, context))
        await until((context.folder / "up").exists)
        pid = int((context.folder / "up").read_text())
        held = os.open(f"/proc/{pid}/fd/1", os.O_WRONLY)
        (context.folder / "go").touch()
        result = await asyncio.wait_for(running, 10)
        os.close(held)
        assert result["output"] == "done\n"


async def test_runs_leave_no_file_open(tmp_path: Path) -> None:
    """Neither success nor failure nor a shell that cannot be started leaves a file descriptor behind."""
    async with _lease(tmp_path) as (_, context):
        before = open_files(os.getpid())
        await ShellRunner().run("true", context)
        with pytest.raises(RunFailed):
            await ShellRunner().run("false", context)
        context.environment["BIG"] = "x" * 200_000
        with pytest.raises(SpawnFailed, match="BIG"):
            await ShellRunner().run("true", context)
        assert open_files(os.getpid()) <= before

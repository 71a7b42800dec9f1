"""What a task of a chaos run does, and how its log and its history are read."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from chaos import work
from chaos.evidence import signs_of
from support.guarded import until

LEASE = {"TOOLCRIB_HOST_ID": "h", "TOOLCRIB_DEVICE_ID": "d", "TOOLCRIB_FENCING": "42", "TOOLCRIB_TASK_ID": "task-1"}


def command(log: Path, *words: str) -> list[str]:
    """Return how a work is started."""
    return [sys.executable, "-I", "-S", work.__file__, str(log), *words]


def test_a_work_notes_its_life(tmp_path: Path) -> None:
    """It writes a start, ticks and an end, in order of time, and prints its fencing number."""
    ran = subprocess.run(command(tmp_path / "log", "0.2"), env=LEASE, capture_output=True, text=True, check=True)
    signs = signs_of(tmp_path / "log")
    assert ran.stdout == "42\n"
    assert [one.kind for one in signs if one.kind != "tick"] == ["start", "end"]
    assert (signs[0].kind, signs[-1].kind, len(signs) > 2) == ("start", "end", True)
    assert {(one.device, one.fencing, one.task) for one in signs} == {("h/d", 42, "task-1")}
    assert [one.at for one in signs] == sorted(one.at for one in signs)


async def test_a_stray_goes_on_as_the_same_work(tmp_path: Path) -> None:
    """A child that is left behind notes on after the end, under the number of the work's process."""
    process = await asyncio.create_subprocess_exec(*command(tmp_path / "log", "0", "stray"), env=LEASE)
    assert await asyncio.wait_for(process.wait(), 10) == 0
    end = next(one.at for one in signs_of(tmp_path / "log") if one.kind == "end")
    await until(lambda: signs_of(tmp_path / "log")[-1].at > end + 0.1)
    assert {one.work for one in signs_of(tmp_path / "log")} == {process.pid}
    for pid in _running(str(tmp_path / "log")):
        os.kill(pid, signal.SIGKILL)


def _running(word: str) -> list[int]:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in file.read_bytes():
                found.append(int(file.parent.name))
        except OSError:
            continue
    return found


def test_a_missing_log_is_an_empty_one(tmp_path: Path) -> None:
    """When no work has begun there are no signs."""
    assert signs_of(tmp_path / "log") == []

"""What happens when the worker, or the guard itself, is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from uuid import uuid4

import pytest

from support.guarded import MARK, alive, marked, running_lab, until
from toolcrib.activities.guard import Guard, GuardLost

WORKER = """
import asyncio, os, pathlib
from toolcrib.activities.guard import Guard

async def main():
    guard = await Guard.start()
    print(guard.pid, flush=True)
    script = "trap '' TERM; setsid sh -c 'trap \\"\\" TERM; echo up; sleep 300' & echo up; wait; sleep 300"
    null = os.open(os.devnull, os.O_RDONLY)
    for n in range(2):
        streams = {"stdin": null, "stdout": 1, "stderr": 2}
        await guard.spawn(f"l{n}", ["sh", "-c", script], env=os.environ, cwd=pathlib.Path("/"), **streams)
    await asyncio.sleep(300)

asyncio.run(main())
"""


async def test_killed_worker_takes_everything_with_it() -> None:
    """Within two seconds of a worker's kill -9 its guard and every process of its works are gone."""
    mark = uuid4().hex
    env = {**os.environ, MARK: mark}
    worker = await asyncio.create_subprocess_exec(sys.executable, "-c", WORKER, stdout=subprocess.PIPE, env=env)
    assert worker.stdout is not None
    lines = [(await worker.stdout.readline()).decode().strip() for _ in range(5)]
    guard = int(lines[0])
    assert lines[1:] == ["up"] * 4
    assert alive(guard)
    worker.kill()
    await worker.wait()
    await until(lambda: not marked(mark) and not alive(guard), within=2)


async def test_killed_guard_takes_its_works_with_it() -> None:
    """When the guard is killed its works end, their waiters and every later spawn get GuardLost, and `lost` is set."""
    async with running_lab() as lab:
        script = """trap '' TERM; setsid sh -c 'trap "" TERM; echo up >&3; sleep 300' & echo up >&3; wait; sleep 300"""
        works = [await lab.script(script, ups=2, lease=f"l{n}") for n in range(3)]
        os.kill(lab.guard.pid, signal.SIGKILL)
        for work in works:
            with pytest.raises(GuardLost, match=work.lease_id):
                await work.wait()
        await asyncio.wait_for(lab.guard.lost.wait(), 10)
        assert lab.left() == []
        with pytest.raises(GuardLost):
            await lab.start("true")
        await works[0].kill(grace=0)


async def test_close_kills_what_is_left() -> None:
    """`close` returns when guard and works are gone; waiters get GuardLost; it may be called twice."""
    async with running_lab() as lab:
        work = await lab.script("trap '' TERM; echo up >&3; sleep 300; sleep 300")
        await lab.guard.close()
        assert lab.left() == []
        assert not alive(lab.guard.pid)
        assert lab.guard.lost.is_set()
        with pytest.raises(GuardLost):
            await work.wait()
        await lab.guard.close()


async def test_a_guard_that_cannot_start_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard that does not get ready is an error with a hint, and leaves no process."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(GuardLost, match="did not start") as caught:
        await Guard.start()
    assert caught.value.hint

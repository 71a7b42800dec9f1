"""A runner of another's may block, or not stop: it harms no other lease, and nobody else gets its device meanwhile."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from support.blocking import PLUGGED, SLEEPING, STUCK, stuck
from support.guarded import alive
from support.lab import Lab, eventually, slot, until, until_pool, until_status
from support.processes import host_file, stopped, toolcrib
from support.runners import STRAYING
from toolcrib.client import TaskCancelled, TaskFailed, TaskHandle

TTL = 3.0


async def test_a_runner_that_blocks_keeps_its_lease_and_those_of_others(lab: Lab) -> None:
    """One blocks for more than twice the ttl, beside one that does not: both are done at the first attempt."""
    crib = await lab.pool(lease_ttl=TTL, max_attempts=1)
    async with lab.host(devices=[slot("a"), slot("b")], goal=SLEEPING):
        tasks = [await crib.submit(f"{how} {2.5 * TTL}") for how in ("block", "await")]
        threads = [await task.result() for task in tasks]
        views = [await task.status() for task in tasks]
    assert threads == [f"lease {view.attempts[0].lease_id}" for view in views]
    assert [len(view.attempts) for view in views] == [1, 1]


async def test_a_runner_that_does_not_stop_keeps_its_device(lab: Lab) -> None:
    """Beyond its cancellation: the next lease is returned, not counted and not run, until it lets go."""
    crib = await lab.pool(lease_ttl=TTL, max_attempts=1)
    async with lab.host(goal=STUCK):
        task = await crib.submit("deaf")
        await eventually(lambda: _begun("deaf"), bool)
        lease = (await task.status()).attempts[0].lease_id
        await task.cancel()
        with pytest.raises(TaskCancelled):
            await task.result()
        pool = await until_pool(crib, lambda pool: pool.leased == 0)
        assert pool.devices[0].state == "resting"
        assert (pool.devices[0].reason or "").startswith("failed once: its host did not confirm that it has ended")
        await _is_kept(await crib.submit("go-cancelled"), lease, "deaf")


async def test_a_runner_that_does_not_stop_at_its_limit_has_failed_by_it(lab: Lab) -> None:
    """The verdict is `time_limit`, and final; its device is kept all the same."""
    crib = await lab.pool(lease_ttl=TTL, max_attempts=1)
    async with lab.host(goal=STUCK):
        task = await crib.submit("block-limited", timeout=1)
        with pytest.raises(TaskFailed, match="the work took longer than 1 s") as caught:
            await task.result()
        assert caught.value.error_code == "time_limit"
        lease = (await task.status()).attempts[0].lease_id
        await _is_kept(await crib.submit("go-limited"), lease, "block-limited")


async def test_a_worker_ends_though_its_runner_does_not(lab: Lab, tmp_path: Path) -> None:
    """Asked to stop, it gives the lease back and ends in order."""
    crib = await lab.pool(lease_ttl=TTL, max_attempts=1)
    file = host_file(tmp_path, "lab-1", drain="1s")
    file.write_text(file.read_text().replace("shell", STUCK))
    async with toolcrib(lab.client, tmp_path, "worker", "--role", "host", "--config", str(file)) as worker:
        task = await crib.submit("block-for-ever")
        await until_status(task, "dispatched")
        assert await stopped(worker) == 0
    async with lab.host("b"):
        view = await until(task, lambda view: len(view.attempts) == 2)
    assert view.attempts[0].outcome == "returned"


async def test_a_runner_aside_has_all_of_its_lease(lab: Lab, tmp_path: Path) -> None:
    """Progress, processes under the guard, folders, a partial result at the limit, and processes that end with it."""
    crib = await lab.pool(lease_ttl=TTL)
    pid = tmp_path / "pid"
    async with lab.host(goal=PLUGGED):
        task = await crib.submit('cat "$TOOLCRIB_ARTIFACTS/note"; pwd')
        assert (await task.result())["output"].startswith("cat ")
        limited = await crib.submit("echo so far; sleep 60", timeout=1)
        with pytest.raises(TaskFailed) as caught:
            await limited.result()
        assert caught.value.result["output"] == "so far\n"
        cancelled = await crib.submit(f"trap '' TERM; setsid sleep 60 & echo $! >{pid}; sleep 60; sleep 60")
        await until(cancelled, lambda view: view.progress == 0.5)
        await eventually(lambda: _exists(pid), bool)
        await cancelled.cancel()
        await eventually(lambda: _gone(pid), bool)
        assert (await cancelled.status()).message == "half way"


async def _is_kept(waiting: TaskHandle, lease: str, held: str) -> None:
    """Prove that a device is kept by `held`, whose lease is over, and that `waiting` gets it when that lets go."""
    try:
        async with asyncio.timeout(60):
            while not (view := await waiting.status()).attempts or view.attempts[0].outcome is None:
                await asyncio.sleep(0.1)
        first = view.attempts[0]
        holder = f"lease {lease} of host lab-1 (process {os.getpid()})"
        assert (first.outcome, first.reason) == ("returned", f"device slot-1 is still in use by {holder}")
        assert not await _begun(view.goal or "")
    finally:
        stuck.let_go(held)
    assert await waiting.result() == view.goal


async def _begun(goal: str) -> bool:
    return goal in stuck.begun


async def _exists(file: Path) -> bool:
    return file.exists() and bool(file.read_text())


async def _gone(file: Path) -> bool:
    return not alive(int(file.read_text()))


async def test_what_a_runner_starts_beside_the_guard_ends_with_the_lease(lab: Lab) -> None:
    """Its processes are found by the environment of the lease, also those that left their session."""
    crib = await lab.pool()
    async with lab.host(goal=STRAYING):
        task = await crib.submit("stray")
        assert not alive(await task.result())

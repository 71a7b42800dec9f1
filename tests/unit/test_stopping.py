"""A process ends when it is asked to, or when a part that it needs has failed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import pytest

from toolcrib.worker.stopping import stop_signals, until_stopped

STUBBORN = """
import asyncio
from toolcrib.worker.stopping import stop_signals

async def main():
    with stop_signals() as stop:
        print("up", flush=True)
        await stop.wait()
        print("stopping", flush=True)
        await asyncio.sleep(3600)

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_asks_for_the_end(number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM set the event, and raise nothing."""
    with stop_signals() as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), number)
        async with asyncio.timeout(30):
            await until_stopped(stop)
    assert stop.is_set()


async def test_afterwards_signals_are_the_loops_again() -> None:
    """Outside the block nothing of it is left."""
    with stop_signals():
        pass
    loop = asyncio.get_running_loop()
    assert not loop.remove_signal_handler(signal.SIGTERM)
    assert not loop.remove_signal_handler(signal.SIGINT)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_the_second_signal_ends_the_process_at_once(number: signal.Signals, code: int) -> None:
    """Who asks again does not wait for what is still to be done; the exit code tells which signal it was."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", STUBBORN, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            assert await process.stdout.readline() == b"up\n"
            process.send_signal(number)
            while await process.stdout.readline() != b"stopping\n":
                pass
            process.send_signal(number)
            assert await process.wait() == code
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_failure_ends_it_as_well() -> None:
    """The first of several events is enough, and nobody goes on waiting for the others."""
    stop, lost, other = asyncio.Event(), asyncio.Event(), asyncio.Event()
    before = asyncio.all_tasks()
    waiting = asyncio.create_task(until_stopped(stop, other, lost))
    await asyncio.sleep(0)
    assert not waiting.done()
    lost.set()
    async with asyncio.timeout(30):
        await waiting
    await asyncio.sleep(0)
    assert asyncio.all_tasks() <= before

"""Code of others runs in threads of its own; calls and cancellations cross over, in both directions."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from toolcrib.activities.aside import Aside, across

Call = Callable[[], Coroutine[Any, Any, Any]]


async def outcome(aside: Aside) -> Any:
    """Return what came of it, in bounded time."""
    return await asyncio.wait_for(asyncio.wrap_future(aside.ended), 30)


async def test_it_runs_in_a_loop_and_a_thread_of_its_own() -> None:
    """A thread that does not keep the process from ending; and what it returns comes back."""

    async def look() -> tuple[Any, threading.Thread]:
        return asyncio.get_running_loop(), threading.current_thread()

    loop, thread = await outcome(Aside("lease 1", look))
    assert loop is not asyncio.get_running_loop()
    assert (thread.name, thread.daemon) == ("lease 1", True)


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), asyncio.CancelledError()])
async def test_what_it_raises_comes_back(error: BaseException) -> None:
    """Whatever it is, and it ends nothing but itself."""

    async def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        await outcome(Aside("lease 1", fail))


async def test_a_cancellation_reaches_it() -> None:
    """Also one that comes before it has begun."""
    for begun in (True, False):
        reached, started = threading.Event(), threading.Event()

        async def stay(reached: threading.Event = reached, started: threading.Event = started) -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                reached.set()

        aside = Aside("lease 1", stay)
        if begun:
            await asyncio.to_thread(started.wait, 30)
        aside.cancel()
        with pytest.raises(asyncio.CancelledError):
            await outcome(aside)
        assert reached.is_set() == started.is_set()
        aside.cancel()  # too late, and harmless


async def test_it_has_ended_when_nothing_is_left_of_it() -> None:
    """What it has left in threads of its own is waited for."""
    left = threading.Event()

    def linger() -> None:
        time.sleep(0.2)
        left.set()

    async def leave() -> str:
        asyncio.get_running_loop().run_in_executor(None, linger)
        return "left"

    assert await outcome(Aside("lease 1", leave)) == "left"
    assert left.is_set()


async def crossing(call: Call) -> tuple[asyncio.Task[Any], Aside]:
    """Call back to this loop from aside; return the task that waits for the answer."""
    home = asyncio.get_running_loop()
    aside = Aside("lease 1", lambda: across(home, call))
    return asyncio.create_task(outcome(aside)), aside


async def test_it_calls_back() -> None:
    """A coroutine runs on the loop that it belongs to, and its answer crosses over; so does its error."""
    home = asyncio.get_running_loop()

    async def answer() -> bool:
        return asyncio.get_running_loop() is home

    async def fail() -> None:
        raise ValueError("no")

    assert await (await crossing(answer))[0] is True
    with pytest.raises(ValueError, match="no"):
        await (await crossing(fail))[0]


async def test_a_cancelled_call_back_is_waited_for() -> None:
    """Its caller goes on when it has ended, and not before."""
    begun, ended = asyncio.Event(), False

    async def slow_to_stop() -> None:
        nonlocal ended
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.1)
            ended = True

    waiting, aside = await crossing(slow_to_stop)
    await begun.wait()
    aside.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended

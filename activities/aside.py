"""Code that may block runs aside: on the event loop of a thread of its own, away from the one that renews leases."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class Aside:
    """One coroutine in a thread of its own, which ends with it. The thread does not keep the process from ending."""

    def __init__(self, name: str, call: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self.ended: Future[Any] = Future()
        """Done when the coroutine and all that it has left in its loop have ended; with what it returned or raised."""
        self._call = call
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[Any] | None = None
        self._unwanted = False
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def cancel(self) -> None:
        """Cancel the coroutine; one that blocks, or swallows it, goes on."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: it has ended
            self._loop.call_soon_threadsafe(self._cancel)

    def _serve(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                result = runner.run(self._main())
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            self.ended.set_exception(error)
        else:
            self.ended.set_result(result)

    async def _main(self) -> Any:
        self._task = asyncio.current_task()
        if self._unwanted:
            raise asyncio.CancelledError
        return await self._call()

    def _cancel(self) -> None:
        self._unwanted = True
        if self._task is not None:
            self._task.cancel()


def here(future: Future[Result]) -> asyncio.Future[Result]:
    """Return a future of another thread as one of this loop; what it raises need not be looked at."""
    waiting = asyncio.wrap_future(future)
    waiting.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return waiting


async def across(loop: asyncio.AbstractEventLoop, call: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Await a coroutine on another thread's loop. A cancellation goes there, and its end there is waited for."""
    begun: Future[asyncio.Task[Result]] = Future()
    ended: Future[None] = Future()

    def begin() -> None:
        task = loop.create_task(call())
        task.add_done_callback(lambda _: ended.set_result(None))
        begun.set_result(task)

    loop.call_soon_threadsafe(begin)
    waiting = asyncio.wrap_future(ended)
    while not waiting.done():
        try:
            await asyncio.wait({waiting})
        except asyncio.CancelledError:
            loop.call_soon_threadsafe(lambda: begun.result().cancel())
    return begun.result().result()


def is_being_cancelled() -> bool:
    """Return whether it is the running task that is cancelled, and not something inside what it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0

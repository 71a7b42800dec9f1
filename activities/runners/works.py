"""Works of an application's own: functions that it has registered by name, run in its own process."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

from toolcrib.activities.context import LeaseContext, RunFailed
from toolcrib.scheduling.constraints import WORK
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.names import checked_name

CONTEXT: Final = "context"
"""A function with a parameter of this name gets its `WorkContext` there."""

Function = Callable[..., Any]


class WorkContext:
    """What a work sees of its task: a function that has a parameter named `context` gets it there."""

    def __init__(self, lease: LeaseContext) -> None:
        self._lease = lease
        self._stop = threading.Event()

    @property
    def task_id(self) -> str:
        """Id of the task."""
        return self._lease.lease.task_id

    @property
    def attempt(self) -> int:
        """Number of this attempt, from 1; what an earlier one began may be there."""
        return self._lease.attempt

    @property
    def device_id(self) -> str:
        """Id of the slot."""
        return self._lease.device.id

    @property
    def host_id(self) -> str:
        """Id under which the application's worker is known."""
        return self._lease.lease.host_id

    @property
    def artifacts(self) -> Path:
        """A folder for what is to be kept; it exists."""
        return self._lease.artifacts

    @property
    def cancelled(self) -> bool:
        """Whether a function that is not async is to stop: cancelled, over its time, or its application ends."""
        return self._stop.is_set()

    def progress(self, value: float, message: str | None = None) -> None:
        """Say how far the work is, from 0 to 1, as often as you like; a few times a second it is passed on.

        Raises:
            asyncio.CancelledError: the function, which is not async, is to stop: let it through.
            InvalidRequest: the value or the message is outside its limits.
        """
        if self._stop.is_set():
            raise asyncio.CancelledError
        self._lease.progress(value, message)

    def log(self, line: str) -> None:
        """Add a line to what `toolcrib logs` shows of this attempt."""
        self._lease.log.line(line)

    def stop(self) -> None:
        """Have the next `progress` raise."""
        self._stop.set()


class Works:
    """An application's works, by name; a `WorkflowRunner`, to be run aside as all that is not ours."""

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}

    def add(self, name: str, function: Function) -> None:
        """Register a function, async or not.

        Raises:
            InvalidRequest: the name is malformed or taken, or the function's parameters are not known.
        """
        if checked_name(name, "work") in self._functions:
            raise InvalidRequest(f"work: {name!r} is registered already", hint="Give one of the two another name.")
        try:
            inspect.signature(function)
        except (TypeError, ValueError) as error:
            raise InvalidRequest(
                f"work: {name!r} is not a function whose parameters are known: {error}",
                hint="Register a function of your own.",
            ) from None
        self._functions[name] = function

    @property
    def tags(self) -> tuple[str, ...]:
        """What a slot that serves these works is tagged with."""
        return tuple(sorted(WORK + name for name in self._functions))

    async def run(self, work: str, inputs: Mapping[str, Any], context: LeaseContext) -> Any:
        """Call the function with the inputs by name, and return what it returns.

        Raises:
            RunFailed: there is no such work here, or the inputs are not its parameters.
        """
        if work not in self._functions:
            raise RunFailed(
                f"host {context.lease.host_id} has no work {work!r}",
                hint="Register it before the worker starts: @crib.work(NAME)",
            )
        function, own = self._functions[work], WorkContext(context)
        call = _bound(work, function, inputs, own)
        return await (call() if inspect.iscoroutinefunction(function) else _in_thread(call, own))


def _bound(work: str, function: Function, inputs: Mapping[str, Any], context: WorkContext) -> Callable[[], Any]:
    signature = inspect.signature(function)
    extra = {CONTEXT: context} if CONTEXT in signature.parameters else {}
    try:
        bound = signature.bind(**inputs, **extra)
    except TypeError as error:
        raise RunFailed(f"the inputs of work {work!r} do not fit: {error}", hint="Correct the inputs.") from None
    return lambda: function(*bound.args, **bound.kwargs)


async def _in_thread(call: Callable[[], Any], context: WorkContext) -> Any:
    """Return what `call` returns; if cancelled, tell it to stop, and wait until it has.

    The thread is not one of asyncio's, for which the process would wait at its end.
    """
    ended: Future[Any] = Future()

    def serve() -> None:
        try:
            ended.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            ended.set_exception(error)

    threading.Thread(target=serve, name=threading.current_thread().name, daemon=True).start()
    waiting = asyncio.wrap_future(ended)
    while not waiting.done():
        try:
            await asyncio.wait({waiting})
        except asyncio.CancelledError:
            context.stop()
    if context.cancelled:
        waiting.exception()  # what it came to, nobody asks any more
        raise asyncio.CancelledError
    return waiting.result()

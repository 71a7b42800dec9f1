"""Runs the runners and drivers of others aside, so that one that blocks stops nothing but itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from toolcrib.activities.aside import Aside, across, here
from toolcrib.activities.context import LeaseContext, RunningWork, Spawner
from toolcrib.activities.guard import NotKilled, SpawnFailed
from toolcrib.scheduling.progress import checked_progress

PROCESSES_GRACE: Final = 1.0
"""Seconds between the cancellation of a runner or driver and SIGKILL for the processes of its lease."""
STOP_WITHIN: Final = 5.0
"""Seconds after its cancellation in which it has to end. They are fewer than a task waits for its host."""


class StillRunning(NotKilled):
    """A runner or driver goes on though it was cancelled. Its device is not free until it or its worker ends."""

    code = "still_running"
    default_hint = "Let it await what takes long, and not swallow CancelledError; or restart the worker."


class Runner(Protocol):
    """A goal runner or a workflow runner: the context is its last argument."""

    async def run(self, *call: Any) -> Any:
        """Do the work."""


class AsideRunner:
    """A goal or workflow runner whose every run has a thread and an event loop of its own."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    @property
    def references(self) -> Any:
        """What the runner says that it runs; None: nothing."""
        return getattr(self._runner, "references", None)

    async def run(self, *call: Any) -> Any:
        """Return what the run returns.

        Raises:
            StillRunning: it was cancelled and has not ended in time.
        """
        return await under_lease("the runner", call[-1], lambda inner: self._runner.run(*call[:-1], inner))


async def under_lease(who: str, context: LeaseContext, call: Callable[[LeaseContext], Coroutine[Any, Any, Any]]) -> Any:
    """Return what `call` returns, in a thread and an event loop of its own, to which its context belongs.

    Raises:
        StillRunning: it was cancelled and has not ended in time; the message says `who` it was.
    """
    link = Link(asyncio.get_running_loop(), context)
    inner = replace(context, guard=link, reporter=link)
    aside = Aside(f"lease {context.lease.id}", lambda: call(inner))
    context.users.append(aside.ended)
    ended = here(aside.ended)
    try:
        await asyncio.wait({ended})
    except asyncio.CancelledError:
        context.stop.set()
        aside.cancel()
        if not await _ends(ended, context):
            raise _still_running(who, context) from None
    finally:
        link.cut()
        context.partial_result = inner.partial_result
    return ended.result()


class Link:
    """What a run aside has of its lease: guard and progress, both of the worker's own loop, until the lease is over."""

    def __init__(self, home: asyncio.AbstractEventLoop, context: LeaseContext) -> None:
        self._home = home
        self._context = context
        self._over = False
        self._newest: tuple[float, str | None] = (0.0, None)
        self._is_passing = False

    def cut(self) -> None:
        """Let nothing more through."""
        self._over = True

    async def spawn(
        self,
        lease_id: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stdin: int,
        stdout: int,
        stderr: int,
    ) -> RunningWork:
        """Start a process under the guard: see `Guard.spawn`."""
        guard: Spawner = self._context.guard

        async def start() -> RunningWork:
            if self._over:
                raise SpawnFailed(f"could not start {argv[0]}: lease {lease_id} is over")
            return await guard.spawn(lease_id, argv, env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr)

        return WorkAside(self._home, await across(self._home, start))

    async def end(self, lease_id: str) -> None:
        """Kill the processes of a lease: see `Guard.end`."""
        await across(self._home, lambda: self._context.guard.end(lease_id))

    def report(self, value: float, message: str | None = None) -> None:
        """Take note of progress. Raises what `ProgressReporter.report` raises."""
        checked_progress(self._context.lease.id, value, message)
        self._newest = (value, message)
        if not self._is_passing:  # a runner that reports all the time must not fill the worker's loop with calls
            self._is_passing = True
            self._home.call_soon_threadsafe(self._pass_on)

    async def flush(self) -> None:
        """Send the last progress now, if it was not."""
        await across(self._home, self._context.reporter.flush)

    def _pass_on(self) -> None:
        self._is_passing = False  # first: what is reported from now on is passed on by a call of its own
        if not self._over:
            self._context.reporter.report(*self._newest)


class WorkAside:
    """A process under the guard, for another thread's loop."""

    def __init__(self, home: asyncio.AbstractEventLoop, work: RunningWork) -> None:
        self.pid = work.pid
        self._home = home
        self._work = work

    async def wait(self) -> int:
        """Return its exit code: see `Work.wait`."""
        return await across(self._home, self._work.wait)

    async def kill(self, grace: float) -> None:
        """End it: see `Work.kill`."""
        await across(self._home, lambda: self._work.kill(grace))


async def _ends(ended: asyncio.Future[Any], context: LeaseContext) -> bool:
    """Return whether a cancelled run ends in time; its processes are killed if they keep it from that."""
    await asyncio.wait({ended}, timeout=PROCESSES_GRACE)
    if not ended.done():
        await context.guard.end(context.lease.id)
        await asyncio.wait({ended}, timeout=STOP_WITHIN - PROCESSES_GRACE)
    return ended.done()


def _still_running(who: str, context: LeaseContext) -> StillRunning:
    return StillRunning(
        f"{who} of lease {context.lease.id} did not stop within {STOP_WITHIN:g} s and keeps {context.device.id}"
    )

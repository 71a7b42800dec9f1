"""The goal runner `shell`: the goal is a script for /bin/sh."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from typing import Any, ClassVar

from toolcrib.activities.context import LeaseContext, RunFailed, RunningWork
from toolcrib.activities.runners.output import Output
from toolcrib.activities.runners.progress_lines import ProgressLines

SCRIPT = "goal.sh"
DRAIN = 1.0
"""Seconds to wait for the rest of the output once all processes are gone."""
QUOTED = 200
"""Characters of the last line that go into the message of a failure."""


class ShellRunner:
    """Runs the goal as a script, in the lease's folder, with the lease's environment and no input.

    The result is `{exit_code, output, omitted_bytes}`; standard output and standard error are one. When it is
    cancelled, `context.partial_result` is the same with an `exit_code` of None. A line such as
    `::toolcrib progress 0.4 copying` says how far the work is, and is not kept: see docs/runners.md.
    """

    grace: ClassVar[float] = 1.0
    """Seconds between SIGTERM and SIGKILL when it is cancelled."""

    async def run(self, goal: str, context: LeaseContext) -> Any:
        """Run the goal; return its result when it exits with code 0. Cancelled, it ends when no process is left.

        Raises:
            RunFailed: it exited with another code or was killed by a signal; the result is in the error.
            SpawnFailed: the shell could not be started.
            GuardLost: the guard died and took the work with it.
            NotKilled: it was cancelled, and processes of it are still there.
        """
        with Output(ProgressLines(context.progress)) as output:
            work = None
            try:
                work = await _start(goal, context, output)
                code = await work.wait()
                await output.drain(DRAIN)
            except asyncio.CancelledError:
                try:
                    await _undisturbed(_stop(work, output, self.grace))
                finally:
                    context.partial_result = _result(None, output)
                raise
            result = _result(code if code >= 0 else 128 - code, output)
        if code:
            raise _failure(code, result, context)
        return result


async def _start(goal: str, context: LeaseContext, output: Output) -> RunningWork:
    # A script, since one argument may have no more than 128 KiB.
    (context.folder / SCRIPT).write_bytes(goal.encode(errors="surrogateescape"))
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        return await context.guard.spawn(
            context.lease.id,
            ["/bin/sh", SCRIPT],
            env=context.environment,
            cwd=context.folder,
            stdin=nothing,
            stdout=output.fd,
            stderr=output.fd,
        )
    finally:
        os.close(nothing)
        output.handed_over()


async def _stop(work: RunningWork | None, output: Output, grace: float) -> None:
    if work is not None:  # else the guard has ended what it was starting
        await work.kill(grace)
    await output.drain(DRAIN)


async def _undisturbed(ending: Coroutine[Any, Any, None]) -> None:
    """Await all of it: a second cancellation must not leave processes behind."""
    task = asyncio.ensure_future(ending)
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            continue
    task.result()


def _result(exit_code: int | None, output: Output) -> dict[str, Any]:
    return {"exit_code": exit_code, "output": output.text, "omitted_bytes": output.omitted_bytes}


def _failure(code: int, result: dict[str, Any], context: LeaseContext) -> RunFailed:
    what = f"exited with code {code}" if code > 0 else f"was killed by {_signal_name(-code)}"
    said = _last_line(result["output"])
    return RunFailed(
        f"command {what}: {said}" if said else f"command {what}",
        hint=f"See what it printed last: toolcrib status {context.lease.task_id}",
        result=result,
    )


def _last_line(text: str) -> str:
    lines = ["".join(filter(str.isprintable, " ".join(line.split()))) for line in text.splitlines()]
    last = next((line for line in reversed(lines) if line), "")
    return last if len(last) <= QUOTED else "…" + last[1 - QUOTED :]


def _signal_name(number: int) -> str:
    return next((known.name for known in signal.Signals if known == number), f"signal {number}")

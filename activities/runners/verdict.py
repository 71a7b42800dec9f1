"""Turns how a command ended into the verdict on its task."""

from __future__ import annotations

import asyncio
import signal
from typing import Any, Final

from toolcrib.activities.context import LeaseContext, RunFailed
from toolcrib.activities.runners.command import GRACE, Command, run_command
from toolcrib.activities.runners.output import Output
from toolcrib.activities.runners.progress_lines import ProgressLines

QUOTED: Final = 200
"""Characters of the last line that go into the message of a failure."""


async def run_to_verdict(command: Command, context: LeaseContext, *, grace: float = GRACE) -> dict[str, Any]:
    """Run a command; return `{exit_code, output, omitted_bytes}` when it exits with code 0.

    Standard output and standard error are one, without the lines that say how far the work is. When it is cancelled,
    `context.partial_result` is the same with an `exit_code` of None.

    Raises:
        RunFailed: it exited with another code or was killed by a signal; the result is in the error.
        SpawnFailed: it could not be started.
        GuardLost: the guard died and took the command with it.
        NotKilled: it was cancelled, and processes of it are still there.
    """
    with Output(ProgressLines(context.progress)) as output:
        try:
            code = await run_command(command, context, stdout=output, stderr=output, grace=grace)
        except asyncio.CancelledError:
            context.partial_result = _result(None, output)
            raise
        result = _result(code if code >= 0 else 128 - code, output)
    if code:
        raise _failure(code, result, context)
    return result


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

"""Turns how a command ended into the verdict on its task."""

from __future__ import annotations

import asyncio
import signal
from typing import Final

from toolcrib.activities.context import LeaseContext, RunFailed, WorkResult
from toolcrib.activities.runners.command import GRACE, Command, run_command
from toolcrib.activities.runners.output import Output
from toolcrib.activities.runners.progress_lines import ProgressLines

QUOTED: Final = 200
"""Characters of the last line that go into the message of a failure."""


async def run_to_verdict(command: Command, context: LeaseContext, *, grace: float = GRACE) -> WorkResult:
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
            context.partial_result = command_result(None, output)
            raise
        result = command_result(code, output)
    if code:
        raise _failure(code, result, context)
    return result


def command_result(code: int | None, output: Output) -> WorkResult:
    """Return what is kept of a command; `code` is that of `run_command`, None if there is none."""
    exit_code = 128 - code if code is not None and code < 0 else code
    return WorkResult(exit_code=exit_code, output=output.text, omitted_bytes=output.omitted_bytes)


def how_it_ended(code: int) -> str:
    """Return the words for an exit code of `run_command`."""
    return f"was killed by {_signal_name(-code)}" if code < 0 else f"exited with code {code}"


def see_output(context: LeaseContext) -> str:
    """Return the hint that leads to what a command has printed."""
    return f"See what it printed: toolcrib logs {context.lease.task_id}"


def _failure(code: int, result: WorkResult, context: LeaseContext) -> RunFailed:
    what, said = f"command {how_it_ended(code)}", last_line(result["output"])
    return RunFailed(f"{what}: {said}" if said else what, hint=see_output(context), result=result)


def last_line(text: str) -> str:
    """Return the last line in which something stands, printable and not too long; it may be empty."""
    lines = ["".join(filter(str.isprintable, " ".join(line.split()))) for line in text.splitlines()]
    last = next((line for line in reversed(lines) if line), "")
    return last if len(last) <= QUOTED else "…" + last[1 - QUOTED :]


def _signal_name(number: int) -> str:
    return next((known.name for known in signal.Signals if known == number), f"signal {number}")

"""Runs one command of a lease under the guard, and reads what it prints."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from toolcrib.activities.context import LeaseContext, RunningWork
from toolcrib.activities.runners.output import Output
from toolcrib.activities.undisturbed import undisturbed

DRAIN: Final = 1.0
"""Seconds to wait for the rest of the output once all processes are gone."""
GRACE: Final = 1.0
"""Seconds between SIGTERM and SIGKILL when a command is cancelled."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """What to start: a program with its arguments, never a shell's words."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables beyond those of the lease, over which these win."""
    cwd: Path | None = None
    """The working folder; the lease's own by default."""
    stdin: bytes | Path | None = None
    """What the command can read, or the file with it; nothing by default."""


async def run_command(
    command: Command, context: LeaseContext, *, stdout: Output, stderr: Output, grace: float = GRACE
) -> int:
    """Run a command; return its exit code (negative: the signal that ended it) once all of its processes are gone.

    `stdout` and `stderr` may be one. Their text is whole when this returns, and also when it is cancelled: then the
    command gets SIGTERM, after `grace` seconds SIGKILL, and `CancelledError` is raised when no process is left.

    Raises:
        SpawnFailed: it could not be started.
        GuardLost: the guard died and took the command with it.
        NotKilled: it was cancelled, and processes of it are still there.
    """
    for output in (stdout, stderr):
        output.log_to(context.log)
    work = None
    try:
        work = await _start(command, context, stdout, stderr)
        code = await work.wait()
        await _drain(stdout, stderr)
    except asyncio.CancelledError:
        await undisturbed(_stop(work, stdout, stderr, grace))
        raise
    return code


async def _start(command: Command, context: LeaseContext, stdout: Output, stderr: Output) -> RunningWork:
    stdin = _readable(command.stdin)
    try:
        return await context.guard.spawn(
            context.lease.id,
            command.argv,
            env={**context.environment, **command.env},
            cwd=command.cwd or context.folder,
            stdin=stdin,
            stdout=stdout.fd,
            stderr=stderr.fd,
        )
    finally:
        os.close(stdin)
        stdout.handed_over()
        stderr.handed_over()


def _readable(content: bytes | Path | None) -> int:
    """Return a file to read `content` from: unlike a pipe, it needs nobody who writes while the command runs."""
    if content is None or isinstance(content, Path):
        return os.open(content or os.devnull, os.O_RDONLY)
    with os.fdopen(os.memfd_create("stdin"), "wb") as file:
        file.write(content)
        file.flush()
        return os.open(f"/proc/self/fd/{file.fileno()}", os.O_RDONLY)


async def _stop(work: RunningWork | None, stdout: Output, stderr: Output, grace: float) -> None:
    if work is not None:  # else the guard has ended what it was starting
        await work.kill(grace)
    await _drain(stdout, stderr)


async def _drain(stdout: Output, stderr: Output) -> None:
    await asyncio.gather(*(output.drain(DRAIN) for output in {stdout, stderr}))

"""The activity that runs one step of a definition, under the guard and only while its lease is held."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, replace
from typing import Final

from temporalio import activity
from temporalio.exceptions import ApplicationError

from toolcrib.activities.context import InfrastructureFailed, LeaseContext, RunFailed
from toolcrib.activities.guard import GuardLost, NotKilled, SpawnFailed
from toolcrib.activities.held_leases import current_lease
from toolcrib.activities.runners.command import run_command
from toolcrib.activities.runners.output import Output
from toolcrib.activities.runners.progress_lines import ProgressLines
from toolcrib.activities.runners.verdict import how_it_ended, last_line
from toolcrib.activities.step_command import StepCommand
from toolcrib.activities.step_log import StepLog
from toolcrib.definitions.steps import DONE, FAILED, StepEnd, StepOrder
from toolcrib.workflows.contract import RUN_STEP, STEP_FAILED
from toolcrib.workflows.failures import to_failure

KEPT_STDOUT: Final = 16 * 1024
KEPT_STDERR: Final = 4 * 1024
"""Bytes that go into the history; all is in the logs."""
HEARTBEAT_EVERY: Final = 10.0
ENDS_WITHIN: Final = 5.0

_running: Final[dict[str, asyncio.Future[None]]] = {}
"""By lease: done when its step has left nothing behind."""


@activity.defn(name=RUN_STEP)
async def run_step(order: StepOrder) -> StepEnd:
    """Run a step once.

    Raises:
        ApplicationError: it failed; of type `STEP_FAILED`, with its `StepEnd`. Others are the host's, and not retried.
    """
    context = current_lease()
    try:
        async with _alone(context), _heartbeats():
            return await _Attempt(order, context, activity.info().attempt).run()
    except (GuardLost, NotKilled, InfrastructureFailed) as error:
        raise to_failure(error) from error


class _Attempt:
    def __init__(self, order: StepOrder, context: LeaseContext, number: int) -> None:
        self._order = order
        self._context = context
        self._number = number
        self._logs = [StepLog(context.artifacts, f"{order.id}-{number}.{kind}") for kind in ("stdout", "stderr")]
        self._step = StepCommand(order, context, number)

    async def run(self) -> StepEnd:
        """Run it, and return how it ended, or raise that as the failure."""
        self._report(0.0, None)
        out_log, err_log = self._logs
        with (
            out_log,
            err_log,
            Output(ProgressLines(self._report), kept=KEPT_STDOUT, log=out_log.write) as stdout,
            Output(ProgressLines(self._report), kept=KEPT_STDERR, log=err_log.write) as stderr,
        ):
            code, problem = await self._run(stdout, stderr)
            end = self._end(code, stdout, stderr)
        if problem is None and code is not None:
            end, problem = self._judged(end, code)
        if problem is None:
            return end
        said = last_line(end.stderr) or last_line(end.stdout)
        raise _failed(replace(end, outcome=FAILED, problem=f"{problem}: {said}" if said else problem))

    async def _run(self, stdout: Output, stderr: Output) -> tuple[int | None, str | None]:
        """Return the exit code, or why there is none."""
        try:
            async with asyncio.timeout(self._order.timeout):
                command = self._step.command()
                return await run_command(command, self._context, stdout=stdout, stderr=stderr), None
        except TimeoutError:
            return None, f"it took longer than {self._order.timeout:g} s"
        except (SpawnFailed, RunFailed) as error:
            return None, error.message

    def _end(self, code: int | None, stdout: Output, stderr: Output) -> StepEnd:
        out_log, err_log = self._logs
        return StepEnd(
            id=self._order.id,
            outcome=DONE,
            exit_code=128 - code if code is not None and code < 0 else code,
            stdout=stdout.text,
            stderr=stderr.text,
            omitted_bytes=stdout.omitted_bytes,
            stdout_log=out_log.name if out_log.written else None,
            stderr_log=err_log.name if err_log.written else None,
            attempts=self._number,
        )

    def _judged(self, end: StepEnd, code: int) -> tuple[StepEnd, str | None]:
        try:
            return replace(end, result=self._step.result(code)), how_it_ended(code) if code else None
        except RunFailed as failure:
            return end, failure.message

    def _report(self, value: float, message: str | None) -> None:
        """Report progress of the step as progress of the whole."""
        order = self._order
        where = f"step {order.number} of {order.of}: {order.id}"
        words = f"{where}: {message}" if message else where
        self._context.progress((order.number - 1 + min(max(value, 0.0), 1.0)) / order.of, words[:500])


@asynccontextmanager
async def _alone(context: LeaseContext) -> AsyncIterator[None]:
    """Let no two attempts run side by side: the server tries again what has not been heard of for a while."""
    lease_id = context.lease.id
    former = _running.get(lease_id)
    if former is not None:
        await context.guard.end(lease_id)
        await asyncio.wait({former}, timeout=ENDS_WITHIN)
        if not former.done():
            raise NotKilled(f"a former attempt of a step does not end (lease {lease_id})")
    ended = _running[lease_id] = asyncio.get_running_loop().create_future()
    try:
        yield
    finally:
        ended.set_result(None)
        if _running.get(lease_id) is ended:
            del _running[lease_id]


@asynccontextmanager
async def _heartbeats() -> AsyncIterator[None]:
    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(HEARTBEAT_EVERY)

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()
        with suppress(asyncio.CancelledError):
            await beating


def _failed(end: StepEnd) -> ApplicationError:
    return ApplicationError(end.problem or "", asdict(end), type=STEP_FAILED)

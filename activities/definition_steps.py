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
from toolcrib.activities.lease_steps import steps_of
from toolcrib.activities.renewal import LeaseLost
from toolcrib.activities.runners.command import run_command
from toolcrib.activities.runners.output import Output
from toolcrib.activities.runners.progress_lines import ProgressLines
from toolcrib.activities.runners.verdict import how_it_ended, last_line
from toolcrib.activities.step_command import StepCommand
from toolcrib.activities.step_log import StepLog
from toolcrib.definitions.steps import DONE, FAILED, StepEnd, StepOrder
from toolcrib.scheduling.progress import MAX_MESSAGE_LENGTH, checked_progress
from toolcrib.workflows.contract import RUN_STEP, STEP_FAILED
from toolcrib.workflows.failures import to_failure

KEPT_STDOUT: Final = 16 * 1024
KEPT_STDERR: Final = 4 * 1024
"""Bytes that go into the history; all is in the logs."""
HEARTBEAT_EVERY: Final = 10.0
"""Seconds; after several of them without one the server counts an attempt as lost."""


@activity.defn(name=RUN_STEP)
async def run_step(order: StepOrder) -> StepEnd:
    """Run a step once.

    Raises:
        ApplicationError: it failed; of type `STEP_FAILED`, with its `StepEnd`. Others are the host's, and not retried.
    """
    context = current_lease()
    steps = steps_of(context.lease.id)
    attempt = _Attempt(order, context, activity.info().attempt)
    try:
        async with steps.alone(context), _heartbeats():
            end = await attempt.run()
    except (GuardLost, NotKilled, InfrastructureFailed) as error:
        raise to_failure(error) from error
    except OSError as error:
        raise to_failure(InfrastructureFailed(f"step {order.id} cannot be run: {error}")) from error
    finally:
        steps.ends[order.id] = attempt.end
    if end.outcome == FAILED:
        raise ApplicationError(end.problem or "", asdict(end), type=STEP_FAILED)
    return end


class _Attempt:
    def __init__(self, order: StepOrder, context: LeaseContext, number: int) -> None:
        self._order = order
        self._context = context
        self._number = number
        self._logs = [StepLog(context.artifacts, f"{order.id}-{number}.{kind}") for kind in ("stdout", "stderr")]
        self._step = StepCommand(order, context, number)
        self.end = StepEnd(id=order.id, outcome=FAILED, attempts=number, problem="it was ended")
        """What came of it, also if it was cancelled."""

    async def run(self) -> StepEnd:
        """Run it, and return what came of it."""
        self._report(0.0, None)
        out_log, err_log = self._logs
        with (
            out_log,
            err_log,
            Output(ProgressLines(self._report), kept=KEPT_STDOUT, log=out_log.write) as stdout,
            Output(ProgressLines(self._report), kept=KEPT_STDERR, log=err_log.write) as stderr,
        ):
            try:
                code, problem = await self._run(stdout, stderr)
            finally:
                self.end = self._printed(stdout, stderr)
        if code is not None:
            problem = self._judge(code)
        if problem is None:
            self.end = replace(self.end, outcome=DONE, problem=None)
        else:
            said = last_line(self.end.stderr) or last_line(self.end.stdout)
            is_said = not said or said.endswith(problem) or problem.endswith(said)
            self.end = replace(self.end, problem=problem if is_said else f"{problem}: {said}")
        return self.end

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

    def _printed(self, stdout: Output, stderr: Output) -> StepEnd:
        out_log, err_log = self._logs
        return replace(
            self.end,
            stdout=stdout.text,
            stderr=stderr.text,
            omitted_stdout_bytes=stdout.omitted_bytes,
            omitted_stderr_bytes=stderr.omitted_bytes,
            stdout_log=out_log.name if out_log.whole else None,
            stderr_log=err_log.name if err_log.whole else None,
        )

    def _judge(self, code: int) -> str | None:
        """Take note of the exit code and of what was returned; return why that is a failure, if it is one."""
        self.end = replace(self.end, exit_code=128 - code if code < 0 else code)
        try:
            self.end = replace(self.end, result=self._step.result(code))
        except RunFailed as failure:
            return failure.message
        return how_it_ended(code) if code else None

    def _report(self, value: float, message: str | None) -> None:
        """Report progress of the step as progress of the whole."""
        order = self._order
        checked_progress(self._context.lease.id, value, message)
        where = f"step {order.number} of {order.of}: {order.id}"
        words = f"{where}: {message}" if message else where
        with suppress(LeaseLost):  # then it is being ended
            self._context.progress((order.number - 1 + value) / order.of, words[:MAX_MESSAGE_LENGTH])


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

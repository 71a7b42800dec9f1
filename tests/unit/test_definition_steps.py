"""The activity that runs one step of a definition."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from toolcrib.activities.context import LeaseContext
from toolcrib.activities.definition_steps import run_step
from toolcrib.activities.held_leases import HeldLeases
from toolcrib.activities.lease_steps import forget
from toolcrib.definitions.steps import StepEnd, StepOrder
from toolcrib.worker.conformance.leases import leased
from toolcrib.workflows.contract import STEP_FAILED


@pytest.fixture
async def context() -> AsyncIterator[LeaseContext]:
    """A lease that is held, with a real guard."""
    async with leased() as context:
        yield context


async def run(context: LeaseContext, attempt: int = 1, **step: Any) -> StepEnd:
    """Run a step under the lease, the second of four, as that attempt."""
    order = StepOrder(**{"id": "s", "number": 2, "of": 4, "runner": "shell", "run": "true", **step})
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=attempt)
    held = HeldLeases().open(context)
    with held.visible():
        return await environment.run(run_step, order)


async def failure(context: LeaseContext, **step: Any) -> ApplicationError:
    """Return the failure of a step."""
    with pytest.raises(ApplicationError) as failed:
        await run(context, **step)
    return failed.value


async def test_what_came_of_a_step(context: LeaseContext) -> None:
    """Both streams apart, exit code and logs; progress lines are none of its output, and count within the whole."""
    script = 'echo "$A"; cat; echo "::toolcrib progress 0.5 half"; echo "::toolcrib progress 7"; echo no >&2'
    end = await run(context, run=script, env={"A": "first"}, stdin="second\n")
    assert (end.outcome, end.exit_code, end.stderr, end.attempts) == ("done", 0, "no\n", 1)
    assert end.stdout.startswith("first\nsecond\n::toolcrib progress 7\ntoolcrib: progress: 7.0 is not")
    assert (context.artifacts / "steps" / "s-1.stdout").read_text() == end.stdout
    assert (end.stdout_log, end.stderr_log) == ("steps/s-1.stdout", "steps/s-1.stderr")
    newest: Any = getattr(context.reporter, "newest", None)
    assert (newest.value, newest.message) == ((1 + 0.5) / 4, "step 2 of 4: s: half")
    assert forget(context.lease.id) == [end]


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ({"run": "echo on stdout; echo on stderr >&2; exit 3"}, "exited with code 3: on stderr"),
        ({"run": "echo on stdout; kill -9 $$"}, "was killed by SIGKILL: on stdout"),
        ({"run": "echo so far; sleep 600", "timeout": 0.5}, "it took longer than 0.5 s: so far"),
        ({"runner": "exec", "run": "no-such-program"}, "could not start no-such-program: "),
        ({"runner": "python", "run": "no_such_module:f"}, "no_such_module:f cannot be imported: ModuleNotFoundError"),
        ({"runner": "python", "run": "json:dumps", "arguments": {"obj": "x" * 70_000}}, "what json:dumps returned"),
        ({"stdin_log": "steps/gone.stdout"}, "its input is no longer there: steps/gone.stdout"),
        ({"run": "true", "env": {"A": "a\0b"}}, "could not start '/bin/sh': variable A holds a NUL"),
    ],
)  # fmt: skip
async def test_failures_may_be_tried_again(context: LeaseContext, step: dict[str, Any], problem: str) -> None:
    """They carry what came of the step, and say what it printed last."""
    error = await failure(context, **step)
    assert (error.type, error.non_retryable) == (STEP_FAILED, False)
    end = StepEnd(**error.details[0])
    assert (end.outcome, error.message) == ("failed", end.problem)
    assert (end.problem or "").startswith(problem)


async def test_faults_of_the_host_are_no_verdict(context: LeaseContext, tmp_path: Path) -> None:
    """A function that blames the infrastructure, and a folder that cannot be written to: neither is tried again."""
    error = await failure(context, runner="python", run="support.definitions:blame")
    assert (error.type, error.non_retryable, error.message) == ("infrastructure_failed", True, "the relay is stuck")
    error = await failure(replace(context, folder=tmp_path / "gone"), run="true")
    assert (error.type, error.non_retryable) == ("infrastructure_failed", True)
    forget(context.lease.id)


async def test_a_failure_is_told_once(context: LeaseContext) -> None:
    """What a function raised is not repeated with the last line that it printed, which is its traceback's."""
    error = await failure(context, runner="python", run="json:loads", arguments={"s": "{"})
    assert str(error.message).count("Expecting") == 1
    forget(context.lease.id)


async def test_a_log_that_cannot_be_written_stops_nothing(context: LeaseContext) -> None:
    """What is printed is in the result all the same, and the result names no log."""
    (context.artifacts / "steps").touch()
    end = await run(context, run="echo here")
    assert (end.outcome, end.stdout, end.stdout_log) == ("done", "here\n", None)


async def test_no_attempt_runs_beside_another(context: LeaseContext) -> None:
    """One that comes while a former one runs, of which the server has not heard, ends all of that first."""
    notes = context.folder / "pid"
    former = asyncio.create_task(run(context, run='trap "" TERM; echo $$ >pid; while :; do sleep 1; done'))
    while not notes.exists() or not notes.read_text().strip():
        await asyncio.sleep(0.02)
    end = await run(context, 2, run='test ! -e "/proc/$(cat pid)" && echo alone')
    assert (end.stdout, end.attempts) == ("alone\n", 2)
    with pytest.raises(ApplicationError, match="was killed by SIGKILL"):
        await former

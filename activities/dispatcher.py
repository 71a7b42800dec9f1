"""TaskDispatcher: runs an assignment through the entry point that its host configured for its kind of work."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json, to_json

from toolcrib.activities.artifacts import with_artifacts
from toolcrib.activities.aside import is_being_cancelled
from toolcrib.activities.context import InfrastructureFailed, LeaseContext, RunFailed
from toolcrib.activities.guard import GuardLost, NotKilled
from toolcrib.activities.runners import GoalRunner, WorkflowRunner
from toolcrib.activities.runners.aside import StillRunning
from toolcrib.scheduling.errors import ErrorBody, ToolcribError
from toolcrib.scheduling.messages import Assignment, Report, ReportOutcome

MAX_RESULT_BYTES: Final = 256 * 1024
MAX_MESSAGE_LENGTH: Final = 4_000


@dataclass(frozen=True, kw_only=True)
class EntryPoints:
    """What runs goals and what runs workflows; None: nothing does."""

    goals: GoalRunner | None
    workflows: WorkflowRunner | None


class TaskDispatcher:
    """Composes existing runners; it adds no planning, execution or retry of its own."""

    def __init__(
        self,
        goals: GoalRunner | None,
        workflows: WorkflowRunner | None,
        works: WorkflowRunner | None = None,
        *,
        by_driver_type: Mapping[str, EntryPoints] | None = None,
    ) -> None:
        """`works` runs the works of an application, by their names, as workflows are run.

        On devices whose driver type is in `by_driver_type`, its runners take the place of `goals` and `workflows`.
        """
        self._entries = EntryPoints(goals=goals, workflows=workflows)
        self._by_driver_type = by_driver_type or {}
        self._works = works

    async def dispatch(self, assignment: Assignment, context: LeaseContext, limit: float) -> Report:
        """Run the assignment once, for at most `limit` seconds, and return how it went.

        Raises:
            GuardLost: the work was killed together with its guard; that is nobody's verdict.
            NotKilled: processes of the work are left.
            StillRunning: its runner does not stop, and that was not because of the time limit.
            InfrastructureFailed: its runner says so, and that was not because of the time limit.
        """
        try:
            async with asyncio.timeout(limit) as bound:
                result = await self._run(assignment, context)
            if not bound.expired():
                return _done(context.lease.id, await with_artifacts(result, context, MAX_RESULT_BYTES))
        except (StillRunning, InfrastructureFailed):
            if not bound.expired():
                raise
        except (GuardLost, NotKilled):
            raise
        except asyncio.CancelledError as error:
            if is_being_cancelled():
                raise
            return await _failed(context, _described(error), None)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a runner raises is its verdict
            if not bound.expired():
                left = error.result if isinstance(error, RunFailed) else None
                return await _failed(context, _described(error), left)
        # However the runner took being stopped, it was the limit that ended it.
        over = ErrorBody(
            code="time_limit",
            message=f"the work took longer than {limit:g} s",
            hint="Give it more: toolcrib submit --timeout DURATION",
        )
        return await _failed(context, over, context.partial_result)

    def _run(self, assignment: Assignment, context: LeaseContext) -> Awaitable[Any]:
        entries = self._by_driver_type.get(context.device.driver_type, self._entries)
        if assignment.goal is not None:
            if entries.goals is None:
                raise _no_runner(context, "goals", "goal")
            return entries.goals.run(assignment.goal, context)
        if assignment.work is not None:
            if self._works is None:
                raise RunFailed(f"host {context.lease.host_id} runs no works", hint="Drop its tags work:... there.")
            return self._works.run(assignment.work, assignment.inputs, context)
        if entries.workflows is None or assignment.workflow is None:
            raise _no_runner(context, "workflows", "workflow")
        return entries.workflows.run(assignment.workflow, assignment.inputs, context)


def _no_runner(context: LeaseContext, kind: str, setting: str) -> RunFailed:
    lease, driver_type = context.lease, context.device.driver_type
    return RunFailed(
        f"host {lease.host_id} runs no {kind} on {driver_type} devices",
        hint=f"Set runners.{setting} in its file, and restart its worker.",
    )


def _done(lease_id: str, result: Any) -> Report:
    return Report(lease_id=lease_id, outcome=ReportOutcome.DONE, result=_as_it_arrives(result))


async def _failed(context: LeaseContext, error: ErrorBody, result: Any) -> Report:
    message = error.message
    try:
        result = _as_it_arrives(await with_artifacts(result, context, MAX_RESULT_BYTES))
    except RunFailed as refusal:
        result, message = None, f"{message} ({refusal.message})"
    kept = ErrorBody(code=error.code, message=_plain(message), hint=error.hint and _plain(error.hint))
    return Report(lease_id=context.lease.id, outcome=ReportOutcome.FAILED, result=result, error=kept)


def _as_it_arrives(result: Any) -> Any:
    """Return a result as its task will see it, since that is what is signed.

    Raises:
        RunFailed: it cannot be sent and kept; sending alone would turn a set into something else.
    """
    try:
        json.dumps(result, allow_nan=False)
        data = to_json(result)
        arrived = from_json(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise RunFailed(f"the result is not JSON: {error}", hint="Return JSON data from the runner.") from None
    if len(data) > MAX_RESULT_BYTES:
        raise RunFailed(
            f"the result is {len(data):,} bytes long, the limit is {MAX_RESULT_BYTES:,}",
            hint="Write it to the folder TOOLCRIB_ARTIFACTS instead.",
        )
    return arrived


def _described(error: BaseException) -> ErrorBody:
    if isinstance(error, ToolcribError):
        return error.body
    return ErrorBody(code="task_failed", message=f"{type(error).__name__}: {error}")


def _plain(text: str) -> str:
    """Return text that can be sent: not too long, and without halves of characters."""
    return text[:MAX_MESSAGE_LENGTH].encode(errors="replace").decode()

"""TaskDispatcher: runs an assignment through the entry point that its host configured for its kind of work."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any, Final

from toolcrib.activities.context import LeaseContext, RunFailed
from toolcrib.activities.guard import GuardLost, NotKilled
from toolcrib.activities.runners import GoalRunner, WorkflowRunner
from toolcrib.scheduling.errors import ErrorBody, ToolcribError
from toolcrib.scheduling.messages import Assignment, Report, ReportOutcome

MAX_RESULT_BYTES: Final = 256 * 1024
MAX_MESSAGE_LENGTH: Final = 4_000


class TaskDispatcher:
    """Composes existing runners; it adds no planning, execution or retry of its own."""

    def __init__(self, goals: GoalRunner | None, workflows: WorkflowRunner | None) -> None:
        self._goals = goals
        self._workflows = workflows

    async def dispatch(self, assignment: Assignment, context: LeaseContext, limit: float) -> Report:
        """Run the assignment once, for at most `limit` seconds, and return how it went.

        Raises:
            GuardLost: the work was killed together with its guard; that is nobody's verdict.
            NotKilled: processes of the work are left.
        """
        try:
            async with asyncio.timeout(limit):
                result = await self._run(assignment, context)
            return _done(context.lease.id, result)
        except (GuardLost, NotKilled):
            raise
        except TimeoutError:
            error = ErrorBody(code="time_limit", message=f"the work took longer than {limit:g} s", hint="--timeout")
            return _failed(context, error, context.partial_result)
        except ToolcribError as error:
            return _failed(context, error.body, error.result if isinstance(error, RunFailed) else None)
        except Exception as error:  # noqa: BLE001 - whatever a runner raises is its verdict
            return _failed(context, ErrorBody(code="task_failed", message=f"{type(error).__name__}: {error}"), None)

    def _run(self, assignment: Assignment, context: LeaseContext) -> Awaitable[Any]:
        if assignment.goal is not None:
            if self._goals is None:
                raise RunFailed(f"host {context.lease.host_id} runs no goals", hint="Set runners.goal in its file.")
            return self._goals.run(assignment.goal, context)
        if self._workflows is None or assignment.workflow is None:
            raise RunFailed(f"host {context.lease.host_id} runs no workflows", hint="Set runners.workflow in its file.")
        return self._workflows.run(assignment.workflow, assignment.inputs, context)


def _done(lease_id: str, result: Any) -> Report:
    """Return the report, or one of failure if the result cannot be kept."""
    try:
        size = len(json.dumps(result, allow_nan=False).encode())
    except (TypeError, ValueError) as error:
        raise RunFailed(f"the result is not JSON: {error}", hint="Return JSON data from the runner.") from None
    if size > MAX_RESULT_BYTES:
        raise RunFailed(
            f"the result is {size:,} bytes long, the limit is {MAX_RESULT_BYTES:,}",
            hint="Write it to the folder TOOLCRIB_ARTIFACTS instead.",
        )
    return Report(lease_id=lease_id, outcome=ReportOutcome.DONE, result=result)


def _failed(context: LeaseContext, error: ErrorBody, result: Any) -> Report:
    short = ErrorBody(code=error.code, message=error.message[:MAX_MESSAGE_LENGTH], hint=error.hint)
    return Report(lease_id=context.lease.id, outcome=ReportOutcome.FAILED, result=result, error=short)

"""DefinitionRun: one run of a workflow definition, under the lease of its task."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from toolcrib.definitions.course import Course, Failure
from toolcrib.definitions.input_types import Scalar
from toolcrib.definitions.model import WorkflowDefinition
from toolcrib.definitions.steps import FAILED, StepEnd, StepOrder
from toolcrib.scheduling.errors import ErrorBody
from toolcrib.scheduling.names import DEFINITION_RUN
from toolcrib.workflows.contract import RUN_STEP, STEP_FAILED
from toolcrib.workflows.failures import to_failure

UNHEARD: Final = 60.0
"""Seconds without a sign of life, beyond the lease's ttl, after which an attempt at a step counts as lost."""
LATER: Final = 15.0
"""Seconds after the end of the lease, which its host enforces, until the server gives up a step by itself."""
LONGEST_PAUSE: Final = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class DefinitionOrder:
    """A definition to be run."""

    definition: WorkflowDefinition
    inputs: dict[str, Scalar]
    """All of the definition's, in their types."""
    task_id: str
    deadline: float
    """When the time limit ends the task's work, in unix seconds."""
    ttl: float = 0.0
    """Seconds for which the lease outlasts a silence of its host."""


@workflow.defn(name=DEFINITION_RUN)
class DefinitionRun:
    """Runs the steps in order, each as an activity; what comes next, and of it all, `Course` decides."""

    @workflow.run
    async def run(self, order: DefinitionOrder) -> dict[str, Any]:
        """Return `{outputs, steps}`.

        Raises:
            ApplicationError: a step failed, or the outputs cannot be put together.
        """
        course = Course(order.definition, order.inputs)
        while (step := course.next()) is not None:
            workflow.set_current_details(_details(course, step))
            course.record(await _run(step, order))
        workflow.set_current_details(_details(course, None))
        outcome = course.outcome()
        if isinstance(outcome, Failure):
            hint = f"See what it printed: toolcrib logs {order.task_id}"
            raise to_failure(ErrorBody(code="task_failed", message=outcome.message, hint=hint), outcome.result)
        return outcome


async def _run(step: StepOrder, order: DefinitionOrder) -> StepEnd:
    left = max(order.deadline - workflow.now().timestamp(), 0.0) + LATER
    try:
        end: StepEnd = await workflow.execute_activity(
            RUN_STEP,
            step,
            result_type=StepEnd,
            schedule_to_close_timeout=timedelta(seconds=left),
            heartbeat_timeout=timedelta(seconds=order.ttl + UNHEARD),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(seconds=1),
                maximum_interval=LONGEST_PAUSE,
                maximum_attempts=step.max_attempts,
            ),
            summary=step.id,
        )
    except ActivityError as error:
        cause = error.cause
        if isinstance(cause, ApplicationError) and cause.type == STEP_FAILED:
            return StepEnd(**cause.details[0])
        if is_cancelled_exception(error) or isinstance(cause, ApplicationError):
            raise  # the lease or the host has ended, and not the step
        return StepEnd(id=step.id, outcome=FAILED, problem=f"nothing was heard of it: {cause}")
    return end


def _details(course: Course, now: StepOrder | None) -> str:
    """Return for the Web UI how far the run is."""
    lines = [f"{end.outcome:<8} {end.id}" for end in course.ends]
    if now is not None:
        lines.append(f"{'running':<8} {now.id}")
    return "\n".join(["### Steps", "```", *lines, "```"])

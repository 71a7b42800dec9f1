"""Has workflows take updates after everything else, and so replay in the order in which they ran.

A query that waited for a worker is answered from a history that may hold more than workflow tasks have worked on.
The SDK lets the workflow take all of that, timers and ended activities as well, and an update that comes with the next
workflow task after it. In a replay both come at once, and there the SDK has the update taken first: the commands are
not in the order of the history, and the workflow is stuck for good. Updates that always come last come in the same
order both times: see docs/decisions/0014-updates-last.md.
"""

from __future__ import annotations

from typing import Any, Final

from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner

_BEFORE_UPDATES_ANYWAY: Final = ("notify_has_patch", "signal_workflow", "initialize_workflow")
_ENDS: Final = (
    "complete_workflow_execution",
    "continue_as_new_workflow_execution",
    "fail_workflow_execution",
    "cancel_workflow_execution",
)


class UpdatesLast(WorkflowRunner):
    """Runs workflows as `runner` does, but for the order of updates."""

    def __init__(self, runner: WorkflowRunner) -> None:
        self._runner = runner

    def prepare_workflow(self, defn: Any) -> None:
        """Prepare a definition, as `runner` does."""
        self._runner.prepare_workflow(defn)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Return an instance that takes updates last."""
        return _Instance(self._runner.create_instance(det))

    def set_worker_level_failure_exception_types(self, types: Any) -> None:
        """Pass them on."""
        self._runner.set_worker_level_failure_exception_types(types)


class _Instance(WorkflowInstance):
    def __init__(self, instance: WorkflowInstance) -> None:
        self._instance = instance

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        updates = [job for job in act.jobs if job.HasField("do_update")]
        others = [job for job in act.jobs if not job.HasField("do_update")]
        if not updates or all(job.WhichOneof("variant") in _BEFORE_UPDATES_ANYWAY for job in others):
            return self._instance.activate(act)
        first = self._instance.activate(_with_jobs(act, others))
        if first.HasField("failed") or any(
            command.WhichOneof("variant") in _ENDS for command in first.successful.commands
        ):
            return first  # nobody is left to take them; their callers hear of it from the server
        second = self._instance.activate(_with_jobs(act, updates))
        if second.HasField("failed"):
            return second
        first.successful.commands.extend(second.successful.commands)
        first.successful.used_internal_flags.extend(second.successful.used_internal_flags)
        return first

    def get_serialization_context(self, command_info: Any) -> Any:
        return self._instance.get_serialization_context(command_info)

    def get_external_store_context(self, command_info: Any) -> Any:
        return self._instance.get_external_store_context(command_info)

    def get_info(self) -> Any:
        return self._instance.get_info()

    def get_thread_id(self) -> int | None:
        return self._instance.get_thread_id()


def _with_jobs(act: WorkflowActivation, jobs: list[WorkflowActivationJob]) -> WorkflowActivation:
    part = WorkflowActivation()
    part.CopyFrom(act)
    del part.jobs[:]
    part.jobs.extend(jobs)
    return part

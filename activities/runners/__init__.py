"""Runners do the work of a lease. One file each; others come by entry point or `module:attribute`.

Those of others run aside: every run on an event loop in a thread of its own, so that one that blocks keeps no lease
from being renewed. A runner must not keep in itself what belongs to one loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from toolcrib.activities.context import LeaseContext
from toolcrib.activities.loading import load
from toolcrib.activities.runners.aside import AsideRunner
from toolcrib.activities.runners.exec import ExecRunner
from toolcrib.scheduling.references import Offered

GOAL_GROUP: Final = "toolcrib.goal_runners"
WORKFLOW_GROUP: Final = "toolcrib.workflow_runners"
EXEC: Final = "exec"
GOAL_RUNNERS: Final = {
    EXEC: "toolcrib.activities.runners.exec:ExecRunner",
    "python": "toolcrib.activities.runners.python:PythonGoals",
    "shell": "toolcrib.activities.runners.shell:ShellRunner",
}
WORKFLOW_RUNNERS: Final = {
    "definition": "toolcrib.activities.runners.definition:DefinitionRunner",
    "python": "toolcrib.activities.runners.python:PythonWorkflows",
    "temporal": "toolcrib.activities.runners.temporal:TemporalRunner",
}


class GoalRunner(Protocol):
    """Runs goals; one instance serves all leases of a host, several at a time."""

    async def run(self, goal: str, context: LeaseContext) -> Any:
        """Reach the goal and return the result, as JSON data. When cancelled, stop all work before giving up.

        Who does not stop within 5 seconds keeps the device until `run` returns or the worker's process ends.

        Raises:
            RunFailed: the work was done and failed, which is final; any other error is taken for that, too.
            InfrastructureFailed: device or host failed; another attempt is made, and it counts against the device.
        """


class WorkflowRunner(Protocol):
    """Runs workflow references; one instance serves all leases of a host, several at a time."""

    async def run(self, workflow: str, inputs: Mapping[str, Any], context: LeaseContext) -> Any:
        """Run `workflow` (`name` or `name@version`) and return the result, as JSON data; see `GoalRunner.run`.

        Raises:
            RunFailed: the work was done and failed, which is final; any other error is taken for that, too.
            InfrastructureFailed: device or host failed; another attempt is made, and it counts against the device.
        """


def load_goal_runner(reference: str, command: Sequence[str] = ()) -> GoalRunner:
    """Return the goal runner that `reference` names (shipped, entry point or `module:attribute`).

    `command` is what `exec` runs.

    Raises:
        InvalidRequest: there is none, or it cannot be loaded.
    """
    if reference == EXEC:
        return ExecRunner(command)
    runner: GoalRunner = load(reference, GOAL_GROUP, GOAL_RUNNERS, "goal runner", ("run",))
    return runner if reference in GOAL_RUNNERS else AsideRunner(runner)


def load_workflow_runner(reference: str) -> WorkflowRunner:
    """Return the workflow runner that `reference` names (shipped, entry point or `module:attribute`).

    Raises:
        InvalidRequest: there is none, or it cannot be loaded.
    """
    runner: WorkflowRunner = load(reference, WORKFLOW_GROUP, WORKFLOW_RUNNERS, "workflow runner", ("run",))
    return runner if reference in WORKFLOW_RUNNERS else AsideRunner(runner)


def references_of(runner: WorkflowRunner) -> Offered:
    """Return the workflows that a runner says it runs, by its attribute `references`; None: it says nothing."""
    said: Iterable[str] | None = getattr(runner, "references", None)
    return None if said is None else tuple(said)

"""The workflow runner `temporal`: any workflow type that a plugin of the host's worker brings, run under the lease."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from toolcrib.activities.brought import Brought, workflow_type
from toolcrib.activities.context import LeaseContext, RunFailed
from toolcrib.activities.runners.under_lease import HostWork, LeasedRuns
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.references import is_reference
from toolcrib.workflows.leased import LeasedDevice, LeasedInput


class TemporalRunner:
    """Runs users' own workflows, by their types. Each gets a `LeasedInput`, and its result is the task's."""

    def __init__(self) -> None:
        self.references: tuple[str, ...] = ()
        """The types of the workflows; they have no versions."""
        self._runs: LeasedRuns | None = None

    def begin(self, host: HostWork) -> Brought:
        """Return what the host's plugins bring.

        Raises:
            InvalidRequest: they bring no workflow.
        """
        if not host.plugins.workflows:
            raise InvalidRequest(
                f"runners.workflow: host {host.host_id} has the runner temporal and no workflows",
                hint="Name the module that brings them: toolcrib worker --plugin MODULE",
            )
        self._runs = host.runs
        types = sorted(workflow_type(cls) for cls in host.plugins.workflows)
        self.references = tuple(filter(is_reference, types))  # what has another name is for children only
        return host.plugins

    async def run(self, workflow: str, inputs: Mapping[str, Any], context: LeaseContext) -> Any:
        """Run the workflow of type `workflow`, and return its result.

        Raises:
            RunFailed: it failed, or this host does not have it.
            StillRunning: it was cancelled, and an activity of it does not end.
        """
        if self._runs is None or workflow not in self.references:
            raise RunFailed(
                f"host {context.lease.host_id} has no workflow {workflow!r}; it has: {', '.join(self.references)}",
                code="unknown_definition",
                hint="Name one of those, or bring it by a plugin of the host's worker: --plugin MODULE",
            )
        return await self._runs.run(context, workflow, leased_input(inputs, context))


def leased_input(inputs: Mapping[str, Any], context: LeaseContext) -> LeasedInput:
    """Return what a workflow is told that runs under a lease with these inputs."""
    lease, device = context.lease, context.device
    return LeasedInput(
        task_id=lease.task_id,
        attempt=lease.attempt,
        lease_id=lease.id,
        fencing=lease.fencing,
        host_id=lease.host_id,
        device=LeasedDevice(
            id=device.id,
            driver=device.driver,
            driver_type=device.driver_type,
            tags=device.tags,
            properties=device.properties,
        ),
        deadline=context.deadline,
        inputs=dict(inputs),
        # What the worker has anyway is left out: histories can be read by all of the namespace.
        environment={name: value for name, value in context.environment.items() if os.environ.get(name) != value},
    )

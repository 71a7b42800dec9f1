"""The workflow runner `definition`: definitions from a folder of the host, run as the workflow DefinitionRun."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.activities.brought import Brought
from toolcrib.activities.context import LeaseContext, RunFailed, WorkResult
from toolcrib.activities.definition_files import Catalog, load_catalog
from toolcrib.activities.definition_steps import run_step
from toolcrib.activities.lease_steps import forget
from toolcrib.activities.runners.under_lease import HostWork, LeasedRuns
from toolcrib.definitions.course import unfinished
from toolcrib.definitions.inputs import checked_inputs
from toolcrib.scheduling.errors import InvalidRequest, UnknownDefinition
from toolcrib.scheduling.names import DEFINITION_RUN
from toolcrib.workflows.definition_run import DefinitionOrder, DefinitionRun


class DefinitionRunner:
    """Runs definitions by their names, or `name@version`."""

    def __init__(self) -> None:
        self._catalog = Catalog(())
        self._runs: LeasedRuns | None = None

    @property
    def references(self) -> tuple[str, ...]:
        """What it runs, each as `name@version`."""
        return self._catalog.references

    def begin(self, host: HostWork) -> Brought:
        """Load the host's definitions, and return what runs them.

        Raises:
            InvalidRequest: it has none, or one is wrong; the message says which and where.
        """
        if host.definitions is None:
            raise InvalidRequest(
                f"runners.workflow: host {host.host_id} has the runner definition and no definitions",
                hint="Name the folder that they are in, in the host's file: definitions: ./definitions",
            )
        self._catalog = load_catalog(host.definitions)
        self._runs = host.runs
        return Brought(workflows=(DefinitionRun,), activities=(run_step,))

    async def run(self, workflow: str, inputs: Mapping[str, Any], context: LeaseContext) -> Any:
        """Run a definition, and return `{outputs, steps}`.

        Raises:
            RunFailed: a step failed, the host does not have the definition, or the inputs are not those it takes.
            StillRunning: it was cancelled, and a step does not end.
        """
        if self._runs is None:
            raise RunFailed(f"host {context.lease.host_id} has no definitions")
        try:
            definition = self._catalog.find(workflow)
            order = DefinitionOrder(
                definition=definition,
                inputs=checked_inputs(definition, inputs),
                task_id=context.lease.task_id,
                deadline=context.deadline,
                ttl=context.lease.ttl,
            )
        except (UnknownDefinition, InvalidRequest) as error:
            raise RunFailed(error.message, hint=error.hint, code=error.error_code) from None
        try:
            return _ours(await self._runs.run(context, DEFINITION_RUN, order))
        except RunFailed as failure:
            failure.result = _ours(failure.result)
            raise
        finally:
            context.partial_result = _ours(unfinished(forget(context.lease.id)))


def _ours(result: Any) -> Any:
    return WorkResult(result) if isinstance(result, dict) else result

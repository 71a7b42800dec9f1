"""The worker of a host's work queue: its presence, and the workflows that run under its leases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

from temporalio.client import Client
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from toolcrib.activities.leased_activities import LeasedActivities
from toolcrib.activities.runners.under_lease import HostWork
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.names import host_work_queue
from toolcrib.worker.host_agent import HostAgent
from toolcrib.worker.host_file import HostFile
from toolcrib.workflows.contract import PRESENCE
from toolcrib.workflows.lease_header import LeaseHeaders

ACTIVITIES_A_RUN: Final = 100
"""That a workflow under a lease may have running at a time, without one waiting for another's."""
OWN: Final = 10
"""Activities of the host itself."""
FEWEST_WORKFLOW_TASKS: Final = 100


def work_worker(client: Client, host: HostFile, agent: HostAgent, work: HostWork) -> Worker:
    """Return the worker of a host's work queue, with room for a workflow on each of its devices.

    Workflows of others run in the SDK's sandbox, as their authors expect; whatever they raise is their verdict, since
    one that only waited to be mended would keep its device.

    Raises:
        InvalidRequest: what a plugin brings cannot be run.
    """
    try:
        return _worker(client, host, agent, work)
    except (
        ValueError,
        RuntimeError,
    ) as error:  # as the SDK raises for what it cannot take, which is theirs: ours is tested
        cause = f": {error.__cause__}" if error.__cause__ is not None else ""
        raise InvalidRequest(
            " ".join(f"plugins: {error}{cause}".split()),
            hint="Correct the module that `--plugin` names; what it imports has to be fit for Temporal's sandbox.",
        ) from error


def _worker(client: Client, host: HostFile, agent: HostAgent, work: HostWork) -> Worker:
    slots = OWN + ACTIVITIES_A_RUN * len(host.devices)
    foreign, brought = work.plugins.activities, agent.brought
    return Worker(
        client,
        task_queue=host_work_queue(host.id),
        activities=[agent.presence.presence, *brought.activities],
        workflows=brought.workflows,
        activity_executor=ThreadPoolExecutor(slots, thread_name_prefix="activity"),
        max_concurrent_activities=slots,
        max_concurrent_workflow_tasks=max(FEWEST_WORKFLOW_TASKS, 2 * len(host.devices)),
        workflow_runner=SandboxedWorkflowRunner(
            restrictions=SandboxRestrictions.default.with_passthrough_modules("toolcrib")
        ),
        workflow_failure_exception_types=[Exception],
        interceptors=[LeasedActivities(work.runs.held, free=[PRESENCE], foreign=foreign), LeaseHeaders()],
    )

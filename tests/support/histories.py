"""Histories of toolcrib's workflows: fetched, written down for the repository, and replayed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, Final

from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer, WorkflowReplayResult, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from support.decisions import Decisions
from toolcrib.worker.scheduler_role import workflow_runner
from toolcrib.worker.update_order import UpdatesLast
from toolcrib.workflows.conversion import DATA_CONVERTER
from toolcrib.workflows.definition_run import DefinitionRun
from toolcrib.workflows.device_pool import DevicePool
from toolcrib.workflows.external_task import ExternalTask
from toolcrib.workflows.host import Host
from toolcrib.workflows.host_files import HostFiles
from toolcrib.workflows.messages import CountedArguments
from toolcrib.workflows.scheduled_task import ScheduledTask

FOLDER: Final = Path(__file__).parents[1] / "replay" / "histories"
"""Where recorded histories are kept."""
MOST: Final = 30
"""Workflow runs of one test that are replayed after it."""
_OF_THE_RECORDER: Final = {"identity": "recorder", "stackTrace": ""}
"""What would tell of the machine that recorded a history; no replay looks at it."""


WORKFLOWS: Final = [DevicePool, ScheduledTask, ExternalTask, Host, HostFiles, DefinitionRun]
"""Ours. Those of users, which tests run under leases, are not for us to replay."""
_OURS: Final = "WorkflowType IN ({})".format(", ".join(f"'{cls.__name__}'" for cls in WORKFLOWS))

STRICT: Final = UpdatesLast(
    SandboxedWorkflowRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules(
            "pydantic", "pydantic_core", "sortedcontainers", "cryptography"
        )
    )
)
"""The SDK's sandbox round all of our workflow code: it forbids clocks, chance and I/O."""


async def replay(histories: Iterable[WorkflowHistory], runner: WorkflowRunner | None = None) -> None:
    """Have today's workflows repeat `histories`, as the workers would, or in another `runner`.

    Raises:
        RuntimeError: they do something else; the notes of the error name the workflow.
        DecidedOtherwise: they do the same kinds of things, but decide otherwise.
    """
    decisions = Decisions()
    replayer = Replayer(
        workflows=WORKFLOWS,
        workflow_runner=runner or workflow_runner(),
        data_converter=DATA_CONVERTER,
        interceptors=[decisions, CountedArguments()],
    )
    async with replayer.workflow_replay_iterator(_one_by_one(histories)) as results:
        async for result in results:
            try:
                _judge(result, decisions)
            except Exception as error:
                error.add_note(f"while replaying workflow {result.history.workflow_id}")
                raise


async def histories_of(client: Client, limit: int = MOST) -> list[WorkflowHistory]:
    """Return the histories of up to `limit` runs of our workflows in a namespace, open and closed, newest first."""
    return [
        await client.get_workflow_handle(found.id, run_id=found.run_id).fetch_history()
        async for found in client.list_workflows(_OURS, limit=limit)
    ]


def dumped(history: WorkflowHistory) -> str:
    """Return a history as JSON, one event a line, without what tells of the machine that it was recorded on."""
    events = (json.dumps(_scrubbed(event), separators=(",", ":")) for event in history.to_json_dict()["events"])
    return '{"events":[\n' + ",\n".join(events) + "\n]}\n"


def recorded() -> list[WorkflowHistory]:
    """Return the histories of the repository."""
    return [loaded(file.read_text(encoding="utf-8")) for file in sorted(FOLDER.glob("*.json"))]


def loaded(text: str) -> WorkflowHistory:
    """Return the history that `dumped` wrote."""
    history = WorkflowHistory.from_json("", text)
    started = history.events[0].workflow_execution_started_event_attributes
    return WorkflowHistory(started.workflow_id, history.events)


def _judge(result: WorkflowReplayResult, decisions: Decisions) -> None:
    if result.replay_failure is not None:
        raise result.replay_failure
    decisions.check(result.history)


async def _one_by_one(histories: Iterable[WorkflowHistory]) -> AsyncIterator[WorkflowHistory]:
    for history in histories:
        yield history


def _scrubbed(part: Any) -> Any:
    if isinstance(part, list):
        return [_scrubbed(each) for each in part]
    if not isinstance(part, dict):
        return part
    if part.get("kind") == "TASK_QUEUE_KIND_STICKY":
        return {**part, "name": "recorder"}
    return {key: _OF_THE_RECORDER.get(key, _scrubbed(value)) for key, value in part.items()}

"""Gathers what the verdict looks at: the works' log, and the histories of all tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from temporalio.api.common.v1 import Payloads
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from chaos.records import Ending, Evidence, Run, Sign
from toolcrib.workflows.contract import RUN_LEASE
from toolcrib.workflows.conversion import DATA_CONVERTER

AT_ONCE: Final = 8
"""Calls to the server at the same time."""

Answer = TypeVar("Answer")

_ENDINGS: Final[Mapping[int, Ending]] = {
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED: "completed",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED: "failed",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED: "canceled",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED: "terminated",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT: "timed_out",
}


async def gather(client: Client, log: Path, tasks: Sequence[str], probes: Mapping[str, str]) -> Evidence:
    """Return all of it; whatever the server lists as a task is looked at, whether it was submitted or not."""
    runs = await _runs(client, tasks)  # first: what has a result by then has an end in the log
    return Evidence(signs=signs_of(log), runs=runs, tasks=tasks, probes=probes)


async def _runs(client: Client, tasks: Sequence[str]) -> list[Run]:
    """Return all runs of all tasks. The server's list may lack what has just happened, so tasks are asked as well."""
    found = [(run.id, run.run_id) async for run in client.list_workflows("WorkflowType = 'ScheduledTask'")]
    newest = await _at_once(_newest(client, task) for task in tasks)
    runs: dict[str, Run] = {}
    missing = dict.fromkeys([*found, *(run for run in newest if run is not None)])
    while missing:
        for run in await _at_once(_run(client, *one) for one in missing):
            runs[run.run_id] = run
        missing = dict.fromkeys(
            (run.task, run.replaces) for run in runs.values() if run.replaces and run.replaces not in runs
        )
    return list(runs.values())


async def _at_once(calls: Iterable[Coroutine[Any, Any, Answer]]) -> list[Answer]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(call: Coroutine[Any, Any, Answer]) -> Answer:
        async with gate:
            return await call

    return await asyncio.gather(*map(one, calls))


async def _newest(client: Client, task: str) -> tuple[str, str] | None:
    try:
        return task, (await client.get_workflow_handle(task).describe()).run_id
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return None


def signs_of(log: Path) -> list[Sign]:
    """Return the lines that works wrote."""
    return [_sign(line) for line in log.read_text(encoding="ascii").splitlines()] if log.exists() else []


def _sign(line: str) -> Sign:
    kind, at, device, fencing, task, work = line.split()
    assert kind in {"start", "tick", "end"}, line
    return Sign(
        kind=kind,  # type: ignore[arg-type]  # as asserted
        at=int(at) / 1e9,
        device=device,
        fencing=int(fencing),
        task=task,
        work=int(work),
        line=line,
    )


async def _run(client: Client, task: str, run_id: str) -> Run:
    history = await client.get_workflow_handle(task, run_id=run_id).fetch_history()
    return await read_run(task, run_id, history.events)


async def read_run(task: str, run_id: str, events: Sequence[HistoryEvent]) -> Run:
    """Return what a run's history says. What a reset run has copied from the one before counts only there."""
    last = events[-1]
    reset = next((event for event in events if _resets(event, run_id)), None)
    expired, returned = await _lapsed(events, since=reset.event_id if reset else 0)
    return Run(
        task=task,
        run_id=run_id,
        ending=_ENDINGS.get(last.event_type, "running"),
        replaces=reset.workflow_task_failed_event_attributes.base_run_id if reset else None,
        reason=last.workflow_execution_terminated_event_attributes.reason or None,
        cancel_requested=any(
            event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED for event in events
        ),
        result=await _output(last),
        expired=expired,
        returned=returned,
    )


def _resets(event: HistoryEvent, run_id: str) -> bool:
    failed = event.workflow_task_failed_event_attributes
    is_reset = failed.cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
    return is_reset and failed.new_run_id == run_id


async def _lapsed(events: Sequence[HistoryEvent], since: int) -> tuple[int, int]:
    """Return how many attempts expired, and how many were returned."""
    leases = {
        event.event_id
        for event in events
        if event.activity_task_scheduled_event_attributes.activity_type.name == RUN_LEASE
    }
    new = [event for event in events if event.event_id > since]
    expired = sum(event.activity_task_timed_out_event_attributes.scheduled_event_id in leases for event in new)
    ends = [event.activity_task_completed_event_attributes for event in new]
    reports = [await _decoded(end.result) for end in ends if end.scheduled_event_id in leases]
    return expired, sum(report["outcome"] == "returned" for report in reports)


async def _output(last: HistoryEvent) -> str | None:
    ended = last.workflow_execution_completed_event_attributes
    result = await _decoded(ended.result) if ended.HasField("result") else None
    return result.get("output") if isinstance(result, dict) else None


async def _decoded(payloads: Payloads) -> Any:
    (value,) = await DATA_CONVERTER.decode(payloads.payloads)
    return value

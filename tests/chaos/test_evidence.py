"""How histories are read for the verdict."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent

from chaos.evidence import read_run
from toolcrib.workflows.contract import RUN_LEASE


def payloads(value: Any) -> Payloads:
    """Return a value as Temporal keeps it."""
    return Payloads(payloads=[Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(value).encode())])


def lease(event_id: int, name: str = RUN_LEASE) -> HistoryEvent:
    """Return the event by which an activity begins."""
    event = HistoryEvent(event_id=event_id)
    event.activity_task_scheduled_event_attributes.activity_type.name = name
    return event


def lapsed(event_id: int, scheduled: int) -> HistoryEvent:
    """Return the event by which an activity times out."""
    event = HistoryEvent(event_id=event_id)
    event.activity_task_timed_out_event_attributes.scheduled_event_id = scheduled
    return event


def reported(event_id: int, scheduled: int, outcome: str) -> HistoryEvent:
    """Return the event by which a host ends a lease."""
    event = HistoryEvent(event_id=event_id)
    event.activity_task_completed_event_attributes.scheduled_event_id = scheduled
    event.activity_task_completed_event_attributes.result.CopyFrom(payloads({"outcome": outcome}))
    return event


def reset(event_id: int, base: str, new: str) -> HistoryEvent:
    """Return the event that a reset leaves in the new run."""
    event = HistoryEvent(event_id=event_id)
    failed = event.workflow_task_failed_event_attributes
    failed.cause = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
    failed.base_run_id, failed.new_run_id = base, new
    return event


def done(event_id: int, output: str) -> HistoryEvent:
    """Return the event by which a task is done."""
    event = HistoryEvent(event_id=event_id, event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED)
    event.workflow_execution_completed_event_attributes.result.CopyFrom(payloads({"output": output}))
    return event


FIRST: Sequence[HistoryEvent] = [lease(5), lapsed(6, 5), lease(7), reported(8, 7, "returned")]


async def test_attempts_are_counted_by_how_they_ended() -> None:
    """A lease that timed out has expired, one that its host gave back was returned; nothing else is an attempt."""
    events = [*FIRST, lease(9), reported(10, 9, "done"), lease(11, "settle"), lapsed(12, 11), done(13, "42\n")]
    run = await read_run("a", "1", events)
    assert (run.ending, run.result, run.expired, run.returned, run.replaces) == ("completed", "42\n", 1, 1, None)


async def test_what_a_reset_has_copied_counts_once() -> None:
    """Of two resets a run knows its own one, and counts only what came after it."""
    copied = [*FIRST, reset(9, "1", "2"), lease(10), lapsed(11, 10)]
    run = await read_run(
        "a", "3", [*copied, reset(12, "2", "3"), lease(13), reported(14, 13, "returned"), done(15, "7")]
    )
    assert (run.replaces, run.expired, run.returned) == ("2", 0, 1)


async def test_a_termination_has_its_reason_and_what_goes_on_has_no_end() -> None:
    """Who terminated a run, and whether it was to be cancelled, is in its history."""
    request = HistoryEvent(event_id=1, event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED)
    end = HistoryEvent(event_id=2, event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED)
    end.workflow_execution_terminated_event_attributes.reason = "why not"
    run = await read_run("a", "1", [request, end])
    assert (run.ending, run.reason, run.cancel_requested) == ("terminated", "why not", True)
    assert (await read_run("a", "1", [request])).ending == "running"

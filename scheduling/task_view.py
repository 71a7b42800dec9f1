"""What a task shows of itself."""

from __future__ import annotations

from toolcrib.scheduling.lease import Attempt
from toolcrib.scheduling.markdown import as_is, labelled
from toolcrib.scheduling.task import Status, TaskRecord
from toolcrib.scheduling.views import STATE_OF, AttemptView, TaskView, moment


def task_view(record: TaskRecord) -> TaskView:
    """Return the task as people and programs see it; its pending reason is known to its pool alone."""
    request = record.request
    lease = record.attempts[-1].lease if record.attempts else None
    return TaskView(
        id=record.task_id,
        name=request.title,
        status=record.status.value,
        state=STATE_OF[record.status],
        pool=request.pool,
        priority=request.priority,
        goal=request.goal,
        workflow=request.workflow,
        work=request.work,
        inputs=request.inputs,
        driver_type=request.driver_type,
        tags=list(request.tags),
        device_id=lease.device_id if lease else request.device_id,
        host_id=lease.host_id if lease else request.host_id,
        attempt=len(record.attempts),
        attempts=[_attempt_view(attempt) for attempt in record.attempts],
        progress=record.progress,
        message=record.message,
        group_id=request.group_id,
        group_name=request.group_name,
        created_at=moment(record.created_at),
        started_at=moment(record.started_at),
        finished_at=moment(record.finished_at),
        result=record.result,
        error=record.error,
    )


def details(record: TaskRecord) -> str:
    """Return the task in a few lines of Markdown, for the Temporal Web UI."""
    lines = [
        labelled("task", record.request.title),
        labelled("status", record.status),
        labelled("pool", record.request.pool),
    ]
    if record.status is Status.QUEUED:
        lines.append(labelled("needs", record.request.constraints))
    if record.progress is not None:
        lines.append(labelled("progress", f"{record.progress:.0%} {record.message or ''}"))
    lines += [_attempt_line(attempt) for attempt in record.attempts[-20:]]
    if record.error is not None:
        lines.append(labelled("error", record.error.message))
    return as_is(lines)


def _attempt_view(attempt: Attempt) -> AttemptView:
    lease = attempt.lease
    return AttemptView(
        number=lease.attempt,
        host_id=lease.host_id,
        device_id=lease.device_id,
        lease_id=lease.id,
        fencing=lease.fencing,
        outcome=attempt.outcome.value if attempt.outcome else None,
        reason=attempt.reason,
        assigned_at=moment(lease.assigned_at),
        expires_at=moment(lease.claim_by),
        claimed_at=moment(attempt.claimed_at),
        ended_at=moment(attempt.ended_at),
    )


def _attempt_line(attempt: Attempt) -> str:
    state = attempt.outcome or ("running" if attempt.claimed_at else "assigned")
    reason = f"  {attempt.reason}" if attempt.reason else ""
    return labelled(f"attempt {attempt.lease.attempt}", f"{attempt.lease.device_key}  {state}{reason}")

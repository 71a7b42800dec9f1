"""Finding tasks by Temporal's visibility, and what they are by asking them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from temporalio.client import Client

from toolcrib.client.task import TaskHandle
from toolcrib.scheduling.errors import InvalidRequest, UnknownTask
from toolcrib.scheduling.names import EXTERNAL_TASK, SCHEDULED_TASK
from toolcrib.scheduling.quoting import shown
from toolcrib.scheduling.views import STATE_OF, State, Status, TaskView

AT_ONCE: Final = 20
_OPEN: Final = ("queued", "assigned", "dispatched")


async def list_tasks(
    client: Client, *, status: Status | None, state: State | None, pool: str | None, group: str | None, limit: int
) -> list[TaskView]:
    """Return at most `limit` tasks that meet all conditions, the newest first, each of them once."""
    if limit < 1:
        raise InvalidRequest(f"limit: {limit} is less than 1")
    _check_known("status", status, STATE_OF.keys())
    _check_known("state", state, STATE_OF.values())
    wanted = [s for s in STATE_OF if status in {None, s} and state in {None, STATE_OF[s]}]
    query = _query(wanted, pool, group)
    found: list[TaskView] = []
    batch: list[str] = []
    seen: dict[str, None] = {}
    async for execution in client.list_workflows(query):
        if execution.id in seen:
            continue  # an earlier run of it, which was reset
        seen[execution.id] = None
        batch.append(execution.id)
        if len(found) + len(batch) >= limit:
            found, batch = found + await _views(client, batch, wanted), []
            if len(found) >= limit:
                return found
    return found + await _views(client, batch, wanted)


async def _views(client: Client, task_ids: list[str], wanted: list[str]) -> list[TaskView]:
    """Ask tasks what they are; search attributes may lag behind it."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def view(task_id: str) -> TaskView | None:
        async with gate:
            try:
                return await TaskHandle(client, task_id).status()
            except UnknownTask:
                return None

    views = await asyncio.gather(*map(view, task_ids))
    return [view for view in views if view is not None and view.status in wanted]


def _query(wanted: list[str], pool: str | None, group: str | None) -> str:
    conditions = [f"WorkflowType IN ('{SCHEDULED_TASK}', '{EXTERNAL_TASK}')"]
    if pool is not None:
        conditions.append(f"ToolcribPool = {_quoted(pool)}")
    if group is not None:
        conditions.append(f"ToolcribGroup = {_quoted(group)}")
    if all(status in _OPEN for status in wanted):
        conditions.append("ExecutionStatus = 'Running'")
    elif not any(status in (*_OPEN, "cancelled") for status in wanted):  # one that was cancelled may be open yet
        conditions.append("ExecutionStatus != 'Running'")
    return " AND ".join(conditions)


def _check_known(field: str, value: str | None, known: Iterable[str]) -> None:
    names = dict.fromkeys(known)
    if value is not None and value not in names:
        raise InvalidRequest(f"{field}: {shown(value)} is none", hint=f"Give one of {', '.join(names)}.")


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"

"""`toolcrib status` and `toolcrib list`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from toolcrib.client.cli.command import command, new_app
from toolcrib.client.cli.format import device, instant, result_text, since
from toolcrib.client.cli.options import GroupId, Pool
from toolcrib.client.cli.output import note, say, say_block, say_table, say_view, say_views
from toolcrib.client.cli.session import Session

if TYPE_CHECKING:
    from toolcrib.scheduling.views import AttemptView, TaskView

app = new_app()

TaskId = Annotated[str, typer.Argument(metavar="ID", help="Id of the task.")]
Status = Annotated[
    Literal["queued", "assigned", "dispatched", "done", "failed", "cancelled"] | None,
    typer.Option(help="Only tasks with this status."),
]
State = Annotated[
    Literal["pending", "running", "completed", "failed", "cancelled"] | None,
    typer.Option(help="Only tasks in this state, in the words of background tasks."),
]
Limit = Annotated[int, typer.Option(min=1, metavar="N", help="The newest N at most.")]


@command(app, "status", examples=["toolcrib status ID", "toolcrib status ID -o json | jq .attempts"])
async def status(session: Session, task_id: TaskId) -> None:
    """Show a task.

    Where it is, why it waits, its attempts and its result.
    """
    async with session.client() as crib:
        view = await crib.task(task_id).status()
    if session.as_json:
        say_view(view)
    else:
        _say_task(view)


@command(
    app, "list", examples=["toolcrib list", "toolcrib list --state running --pool phones", "toolcrib list -o json"]
)
async def list_tasks(
    session: Session,
    status: Status = None,
    state: State = None,
    pool: Pool = None,
    group: GroupId = None,
    limit: Limit = 100,
) -> None:
    """List tasks, newest first."""
    async with session.client() as crib:
        views = await crib.tasks(status=status, state=state, pool=pool, group=group, limit=limit)
    if session.as_json:
        say_views(views)
    elif views:
        say_table(("ID", "NAME", "STATUS", "DEVICE", "WAITED", "AGE"), map(_row, views))
    else:
        note("no such tasks")


def _row(view: TaskView) -> tuple[str, ...]:
    progress = "" if view.ended or view.progress is None else f" {view.progress:.0%}"
    waited = since(view.created_at, view.started_at or view.finished_at)
    return view.id, view.name, view.status + progress, device(view), waited, since(view.created_at)


def _say_task(view: TaskView) -> None:
    say_block(
        (
            ("id", view.id),
            ("name", view.name),
            ("status", view.status),
            ("waits", view.pending_reason.text if view.pending_reason else None),
            ("progress", None if view.progress is None else f"{view.progress:.0%}"),
            ("message", view.message),
            ("pool", f"{view.pool}, priority {view.priority}"),
            ("group", view.group_name or view.group_id),
            ("goal", view.goal),
            ("workflow", view.workflow),
            ("work", view.work),
            ("asks for", _asked(view)),
            ("device", device(view) if view.attempt else None),
            ("created", instant(view.created_at)),
            ("started", instant(view.started_at)),
            ("finished", instant(view.finished_at)),
            ("error", f"{view.error.message} ({view.error.code})" if view.error else None),
            ("hint", view.error.hint if view.error else None),
        )
    )
    if view.attempts:
        say("attempts")
        headers = ("", "DEVICE", "OUTCOME", "ASSIGNED", "TOOK", "REASON")
        say_table(headers, map(_attempt_row, view.attempts), indent="  ")
    text = result_text(view.result)
    if text is not None:
        say(f"result\n{text}")


def _asked(view: TaskView) -> str | None:
    """Return what it asks of its device; which host and device, a task that has had a lease no longer tells."""
    asked = {"type": view.driver_type}
    if not view.attempt:
        asked |= {"host": view.host_id, "device": view.device_id}
    parts = [f"{what} {value}" for what, value in asked.items() if value is not None]
    return ", ".join([*parts, *(f"tag {tag}" for tag in view.tags)]) or None


def _attempt_row(attempt: AttemptView) -> tuple[str, ...]:
    return (
        str(attempt.number),
        f"{attempt.host_id}/{attempt.device_id}",
        attempt.outcome or "open",
        instant(attempt.assigned_at) or "",
        since(attempt.assigned_at, attempt.ended_at),
        attempt.reason or "",
    )

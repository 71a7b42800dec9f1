"""`toolcrib external start|progress|complete|fail|cancel`: tasks that run elsewhere, from scripts."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from toolcrib.client.cli.command import command, new_app
from toolcrib.client.cli.options import GroupId, Pool
from toolcrib.client.cli.output import note, say, say_view
from toolcrib.client.cli.session import Session

app = new_app("Register work that runs elsewhere, and say how it goes.")

TaskId = Annotated[str, typer.Argument(metavar="ID", help="As `external start` printed it.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="What it is called.")]
GroupName = Annotated[str | None, typer.Option(metavar="TEXT", help="What the group is called.")]
Value = Annotated[str, typer.Argument(metavar="VALUE", help="From 0 to 1, or in percent: 0.4, or 40%.")]
Message = Annotated[str | None, typer.Argument(metavar="MESSAGE", help="What is going on.", show_default=False)]
Reason = Annotated[str, typer.Argument(metavar="MESSAGE", help="Why it failed.")]
Result = Annotated[str | None, typer.Option(metavar="JSON", help="Its result.")]


@command(app, "start", examples=["toolcrib external start 'nightly backup' --group backups"])
async def start(
    session: Session, name: Name, group: GroupId = None, group_name: GroupName = None, pool: Pool = None
) -> None:
    """Register a task that runs elsewhere, and print its id. It is running from then on, and takes no device."""
    from toolcrib.client import Group
    from toolcrib.scheduling.errors import InvalidRequest

    if group_name is not None and group is None:
        raise InvalidRequest("group_name: needs a group", hint="Give it one: --group ID")
    async with session.answering(pool) as crib:
        task = await crib.external(name, group=Group(group, group_name) if group else None).start()
        if session.as_json:
            say_view(await task.status())
        else:
            say(task.id)


@command(app, "progress", examples=["toolcrib external progress ID 0.4 'copying'", "toolcrib external progress ID 40%"])
async def progress(session: Session, task_id: TaskId, value: Value, message: Message = None) -> None:
    """Say how far a task is."""
    from toolcrib.scheduling.progress import parse_progress

    progress = parse_progress(value)
    async with session.answering() as crib:
        task = crib.external_task(task_id)
        await task.progress(progress, message)
        await task.flush()


@command(
    app, "complete", examples=["toolcrib external complete ID", """toolcrib external complete ID --result '[1]'"""]
)
async def complete(session: Session, task_id: TaskId, result: Result = None) -> None:
    """End a task as done."""
    async with session.answering() as crib:
        await crib.external_task(task_id).complete(_json(result))
    note(f"task {task_id} is done")


@command(app, "fail", examples=["toolcrib external fail ID 'the disk is full'"])
async def fail(session: Session, task_id: TaskId, message: Reason) -> None:
    """End a task as failed."""
    async with session.answering() as crib:
        await crib.external_task(task_id).fail(message)
    note(f"task {task_id} has failed")


@command(app, "cancel", examples=["toolcrib external cancel ID"])
async def cancel(session: Session, task_id: TaskId) -> None:
    """End a task as cancelled, and tell its caller so."""
    async with session.answering() as crib:
        await crib.external_task(task_id).cancel()
    note(f"task {task_id} is cancelled")


def _json(text: str | None) -> Any:
    from toolcrib.scheduling.errors import InvalidRequest

    try:
        return None if text is None else json.loads(text)
    except ValueError as error:
        raise InvalidRequest(f"result: not JSON: {error}") from None

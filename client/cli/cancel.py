"""`toolcrib cancel`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

from toolcrib.client.cli.command import command, new_app
from toolcrib.client.cli.options import GroupId, TaskIds
from toolcrib.client.cli.output import note, say, say_views
from toolcrib.client.cli.report import EXIT_REFUSED, report
from toolcrib.client.cli.session import Session
from toolcrib.scheduling.errors import TaskEnded, ToolcribError, UnknownTask

if TYPE_CHECKING:
    from toolcrib.client import TaskHandle, Toolcrib

MAX_CANCELLED: Final = 10_000

app = new_app()


@command(app, "cancel", examples=["toolcrib cancel ID", "toolcrib cancel ID1 ID2", "toolcrib cancel --group nightly"])
async def cancel(session: Session, task_ids: TaskIds = None, group: GroupId = None) -> None:
    """Cancel tasks and print their ids.

    Queued ones never start; the work of running ones is stopped. One that is done or has failed stays as it is: exit 4.
    """
    if bool(task_ids) == (group is not None):
        raise typer.BadParameter("give tasks or a group, and not both", param_hint="ID")
    failures: list[ToolcribError] = []
    async with session.answering() as crib:
        if group is not None:
            handles = await _cancel_group(crib, group)
        else:
            handles, failures = await _cancel_each([crib.task(task_id) for task_id in dict.fromkeys(task_ids or ())])
        await _answer(session, handles)
    for failure in failures:
        report(failure, as_json=session.as_json)
    if failures:
        raise typer.Exit(EXIT_REFUSED if isinstance(failures[0], TaskEnded) else failures[0].exit_code)


async def _cancel_each(handles: list[TaskHandle]) -> tuple[list[TaskHandle], list[ToolcribError]]:
    cancelled: list[TaskHandle] = []
    failures: list[ToolcribError] = []
    for handle in handles:
        try:
            await handle.cancel()
            cancelled.append(handle)
        except TaskEnded as error:
            failures.append(TaskEnded(error.message, hint=f"See how it ended: toolcrib status {handle.id}"))
        except UnknownTask as error:
            failures.append(error)
    return cancelled, failures


async def _cancel_group(crib: Toolcrib, group: str) -> list[TaskHandle]:
    """Cancel what is open in the group; what ends meanwhile needs no cancelling."""
    views = await crib.tasks(group=group, limit=MAX_CANCELLED)
    cancelled, _ = await _cancel_each([crib.task(view.id) for view in views if not view.ended])
    if not cancelled:
        note(f"no open tasks in group {group!r}")
    return cancelled


async def _answer(session: Session, handles: list[TaskHandle]) -> None:
    if session.as_json:
        say_views([await handle.status() for handle in handles])
    else:
        for handle in handles:
            say(handle.id)

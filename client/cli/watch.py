"""`toolcrib watch`."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import typer

from toolcrib.client.cli.command import command, new_app
from toolcrib.client.cli.follow import changes
from toolcrib.client.cli.format import where
from toolcrib.client.cli.options import GroupId, Pool, TaskIds
from toolcrib.client.cli.output import note, one_line, say, say_view
from toolcrib.client.cli.session import Session

if TYPE_CHECKING:
    from toolcrib.client import TaskHandle, Toolcrib
    from toolcrib.scheduling.views import TaskView

MAX_WATCHED: Final = 200

app = new_app()

_EXAMPLES = ["toolcrib watch ID", "toolcrib watch --group nightly", "toolcrib watch ID -o json | jq .status"]


@command(app, "watch", examples=_EXAMPLES)
async def watch(session: Session, task_ids: TaskIds = None, group: GroupId = None, pool: Pool = None) -> None:
    """Print each change of tasks until they end.

    Of a group or pool, the tasks are watched that are open when the command starts.
    """
    if [bool(task_ids), group is not None, pool is not None].count(True) != 1:
        raise typer.BadParameter("give tasks, a group or a pool, and only one of these", param_hint="ID")
    async with session.client(pool) as crib:
        handles = await _handles(crib, task_ids or (), group, pool)
        shown: dict[str, str] = {}
        async with aclosing(changes(handles)) as views:
            async for view in views:
                _say_change(session, view, shown)


async def _handles(
    crib: Toolcrib, task_ids: list[str] | tuple[()], group: str | None, pool: str | None
) -> list[TaskHandle]:
    if task_ids:
        return [crib.task(task_id) for task_id in dict.fromkeys(task_ids)]
    views = [view for view in await crib.tasks(group=group, pool=pool, limit=MAX_WATCHED) if not view.ended]
    if not views:
        note("no open tasks there")
    return [crib.task(view.id) for view in views]


def _say_change(session: Session, view: TaskView, shown: dict[str, str]) -> None:
    if session.as_json:
        say_view(view, indent=None)
        return
    line = one_line(where(view))
    if shown.get(view.id) != line:
        say(f"{view.id}  {line}")
    shown[view.id] = line

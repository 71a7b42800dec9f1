"""`toolcrib watch`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Final

import typer

from toolcrib.client.cli.command import command, new_app
from toolcrib.client.cli.follow import tell_silence
from toolcrib.client.cli.format import where
from toolcrib.client.cli.options import GroupId, Pool, TaskIds
from toolcrib.client.cli.output import is_live, note, one_line, say, say_view
from toolcrib.client.cli.session import Session

if TYPE_CHECKING:
    from toolcrib.client import Toolcrib
    from toolcrib.scheduling.views import State, TaskView

MAX_WATCHED: Final = 200

app = new_app()

_EXAMPLES = ["toolcrib watch ID", "toolcrib watch --group nightly", "toolcrib watch ID -o json | jq .status"]


@command(app, "watch", examples=_EXAMPLES)
async def watch(session: Session, task_ids: TaskIds = None, group: GroupId = None, pool: Pool = None) -> None:
    """Show tasks while they change, until they end: bars on a terminal, a line for each change elsewhere.

    Of a group or pool, the tasks are watched that are open when the command starts.
    """
    if [bool(task_ids), group is not None, pool is not None].count(True) != 1:
        raise typer.BadParameter("give tasks, a group or a pool, and only one of these", param_hint="ID")
    async with session.client(pool) as crib:
        ids = list(dict.fromkeys(task_ids)) if task_ids else await _open_tasks(crib, group, pool)
        with _shown(session) as show:
            async with aclosing(crib.watch(ids, on_silence=tell_silence)) as views:
                async for view in views:
                    show(view)


async def _open_tasks(crib: Toolcrib, group: str | None, pool: str | None) -> list[str]:
    """Return the ids of open tasks, those that run first."""
    states: tuple[State, ...] = ("running", "pending")
    lists = [await crib.tasks(state=state, group=group, pool=pool, limit=MAX_WATCHED + 1) for state in states]
    found = list(dict.fromkeys(view.id for views in lists for view in views))
    if not found:
        note("no open tasks there")
    if len(found) > MAX_WATCHED:
        note(f"there are more open tasks than can be watched; these are {MAX_WATCHED} of them")
    return found[:MAX_WATCHED]


@contextmanager
def _shown(session: Session) -> Iterator[Callable[[TaskView], None]]:
    """Give what shows a task that has changed."""
    if session.as_json:
        yield lambda view: say_view(view, indent=None)
    elif is_live():
        from toolcrib.client.cli.bars import Bars

        with Bars() as bars:
            yield bars.show
    else:
        yield _Lines().show


class _Lines:
    """Writes a line for each change that shows in it."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}

    def show(self, view: TaskView) -> None:
        line = one_line(where(view))
        if self._shown.get(view.id) != line:
            say(f"{view.id}  {one_line(view.name)}: {line}")
        self._shown[view.id] = line

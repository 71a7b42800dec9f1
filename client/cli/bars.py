"""Tasks as bars on a terminal: one a task while it is open, and a line that stays when it has ended."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID
from rich.table import Column
from rich.text import Text

from toolcrib.client.cli.format import since, where
from toolcrib.client.cli.output import one_line
from toolcrib.scheduling.views import TaskView

NAME_WIDTH: Final = 24
BAR_WIDTH: Final = 20


class Bars:
    """Shows tasks as they are; use it as a context manager."""

    def __init__(self) -> None:
        self._bars: dict[str, TaskID] = {}
        self._progress = Progress(
            _Words(lambda view: view.name, Column(max_width=NAME_WIDTH, no_wrap=True, overflow="ellipsis")),
            BarColumn(BAR_WIDTH),
            _Words(_age, Column(justify="right", no_wrap=True)),
            _Words(where, Column(ratio=1, no_wrap=True, overflow="ellipsis")),
            console=Console(),
            expand=True,
        )

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, view: TaskView) -> None:
        """Show a task as it is now."""
        if view.ended:
            if view.id in self._bars:
                self._progress.remove_task(self._bars.pop(view.id))
            self._progress.console.print(Text(one_line(f"{view.id}  {view.name}: {where(view)}")), soft_wrap=True)
            return
        if view.id not in self._bars:
            self._bars[view.id] = self._progress.add_task("", view=view)
        unknown = view.state == "running" and view.progress is None
        self._progress.update(
            self._bars[view.id], total=None if unknown else 1.0, completed=view.progress or 0.0, view=view
        )


class _Words(ProgressColumn):
    """What is said of a task; nothing in it is taken for markup."""

    def __init__(self, words: Callable[[TaskView], str], column: Column) -> None:
        super().__init__(column)
        self._words = words

    def render(self, task: Task) -> Text:
        """Return the words, on one line."""
        return Text(one_line(self._words(task.fields["view"])))


def _age(view: TaskView) -> str:
    """Return for how long a task has run, or has waited."""
    return since(view.started_at or view.created_at)

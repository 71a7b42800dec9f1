"""Follows tasks while they change, and tells how they ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolcrib.client.cli.format import result_text, since, where
from toolcrib.client.cli.output import note, one_line
from toolcrib.scheduling.errors import TaskCancelled, TaskFailed

if TYPE_CHECKING:
    from toolcrib.client import TaskHandle
    from toolcrib.scheduling.views import TaskView


def tell_silence() -> None:
    """Tell that there is no answer, and that it is waited for."""
    note("no answer from the server or its schedulers; waiting for one")


async def until_ended(handle: TaskHandle) -> TaskView:
    """Wait for the end of a task, showing on standard error where it is, and return its last view."""
    with _live() as show:
        async for view in handle.watch(on_silence=tell_silence):
            if view.ended:
                return view
            show(one_line(where(view)))
    return await handle.status()


def tell_outcome(view: TaskView) -> None:
    """Tell how a task that has ended went: its outcome, and what it gave or wrote."""
    took = f" after {since(view.started_at, view.finished_at)}" if view.started_at else ""
    note(one_line(f"{view.name}: {view.status}{took}"))
    text = result_text(view.result)
    if text is not None:
        note(text)


def raise_unless_done(view: TaskView) -> None:
    """Raise what makes the exit code tell how the task ended.

    Raises:
        TaskFailed, TaskCancelled: it did not end as done.
    """
    hint = f"See: toolcrib status {view.id}"
    if view.status == "cancelled":
        raise TaskCancelled(f"task {view.id} was cancelled", hint=hint)
    if view.status == "failed" and view.error:
        raise TaskFailed(view.error.message, hint=view.error.hint or hint, code=view.error.code)
    if view.status == "failed":
        raise TaskFailed(f"task {view.id} failed", hint=hint)


@contextmanager
def _live() -> Iterator[Callable[[str], None]]:
    """Give a function that shows the latest line: in place on a terminal, below each other elsewhere."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.text import Text

        with Console(stderr=True).status("submitted") as status:
            yield lambda line: status.update(Text(line))
    else:
        yield _Changes().show


class _Changes:
    """Writes a line when it differs from the one before."""

    def __init__(self) -> None:
        self._last = ""

    def show(self, line: str) -> None:
        if line != self._last:
            note(line)
        self._last = line

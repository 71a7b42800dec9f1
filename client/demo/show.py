"""What the demo shows: a live table while the tasks run, then what ran where."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.table import Table

from toolcrib.client.demo.browser import show_browser
from toolcrib.client.demo.jobs import JOBS, faults, overlaps, ran, waited
from toolcrib.client.demo.lab import Lab, lab
from toolcrib.client.task import TaskHandle
from toolcrib.scheduling.views import TaskView

INTERVAL: Final = 0.25
TIME_LIMIT: Final = 120.0
_COLOURS: Final = {"done": "green", "failed": "red", "dispatched": "yellow", "assigned": "yellow", "queued": "dim"}


async def run_demo() -> bool:
    """Run the demo on this terminal, and return whether every task ended as it should.

    Raises:
        ToolcribError: the lab did not start.
    """
    console = Console()
    console.print("Starting Temporal's server, a scheduler, and two hosts with two devices each ...")
    async with lab() as running:
        console.print(f"Web UI: {running.ui}/namespaces/default/workflows")
        handles = await running.crib.submit_many([job.request for job in JOBS])
        console.print(f"{len(handles)} tasks submitted to pool demo; four can run at once.\n")
        views = await _follow(console, handles)
        return _conclude(console, running, views) and await show_browser(console, running)


async def _follow(console: Console, handles: Sequence[TaskHandle]) -> list[TaskView]:
    """Show the tasks until all have ended."""
    async with asyncio.timeout(TIME_LIMIT):
        if not console.is_terminal:
            return list(await asyncio.gather(*(_follow_one(console, handle) for handle in handles)))
        with Live(console=console, auto_refresh=False) as live:
            while True:
                views = list(await asyncio.gather(*(handle.status() for handle in handles)))
                live.update(_table(views), refresh=True)
                if all(view.ended for view in views):
                    return views
                await asyncio.sleep(INTERVAL)


async def _follow_one(console: Console, handle: TaskHandle) -> TaskView:
    """Print a line whenever a task's status changes, as a live table is nothing for a file."""
    shown = None
    async for view in handle.watch():
        if view.status != shown:
            console.print(f"{view.name:<20} {view.status:<11} {_where(view)}", highlight=False)
        shown = view.status
    return view


def _conclude(console: Console, running: Lab, views: Sequence[TaskView]) -> bool:
    if not console.is_terminal:
        console.print(_table(views))
    wrong = [fault for job, view in zip(JOBS, views, strict=True) for fault in faults(job, view)] + overlaps(views)
    for fault in wrong:
        console.print(f"[red]{fault}")
    if wrong:
        console.print(running.log.read_text(encoding="utf-8", errors="replace"), highlight=False, markup=False)
        return False
    failed = sum(view.status == "failed" for view in views)
    console.print(
        f"\nEvery task ended as it should: {len(views) - failed} done, {failed} failed on purpose; "
        "no device was ever used by two tasks at once."
    )
    return True


def _table(views: Sequence[TaskView]) -> Table:
    table = Table("task", "status", "ran on", "waited", "ran for", "outcome", box=None, pad_edge=False)
    for view in views:
        duration = ran(view)
        table.add_row(
            view.name,
            f"[{_COLOURS.get(view.status, '')}]{view.status}",
            _where(view),
            f"{waited(view):.1f} s" if view.started_at else "",
            f"{duration:.1f} s" if duration is not None else "",
            _outcome(view),
        )
    return table


def _where(view: TaskView) -> str:
    return f"{view.host_id}/{view.device_id}" if view.attempts else ""


def _outcome(view: TaskView) -> str:
    if view.error is not None:
        return view.error.message
    if isinstance(view.result, dict):
        return str(view.result.get("output", "")).strip()
    return view.pending_reason.text if view.pending_reason else ""

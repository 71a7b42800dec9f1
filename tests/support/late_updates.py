"""A workflow that a timer has do something while updates come in."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow

TIMER = 1.0
"""Seconds."""


@workflow.defn
class LateUpdates:
    """Starts an activity, which nobody runs, after a while; ends when it is told to."""

    def __init__(self) -> None:
        self._updates = 0
        self._over = False

    @workflow.run
    async def run(self) -> None:
        waking = asyncio.create_task(self._wake())
        await workflow.wait_condition(lambda: self._over)
        await waking

    @workflow.update
    def update(self) -> int:
        self._updates += 1
        return self._updates

    @workflow.query
    def updates(self) -> int:
        return self._updates

    @workflow.signal
    def end(self) -> None:
        self._over = True

    async def _wake(self) -> None:
        await asyncio.sleep(TIMER)
        workflow.start_activity("nobody", task_queue="nobody", start_to_close_timeout=timedelta(minutes=1))

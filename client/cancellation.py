"""A task is cancelled at once; its workflow stays open until its host has ended the work, or cannot do more of it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final

from temporalio.client import WorkflowHandle
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError

FIRST_LOOK: Final = 1.0
LONGEST_PAUSE: Final = 5.0
AFTER_CANCEL: Final = 0.05
GROWTH: Final = 1.5
"""Seconds between two looks: fewer and fewer, unless this client has just cancelled the task."""
ANSWER_WITHIN: Final = timedelta(seconds=10)

_STATUS: Final = SearchAttributeKey.for_keyword("ToolcribStatus")


async def until_cancelled(task: WorkflowHandle[Any, Any], asked: asyncio.Event) -> None:
    """Return when the task is cancelled; `asked` is set when this client has asked for that.

    Only the server is asked, not the workflow: that costs it a read, and nobody else anything.
    """
    pause, hurried = FIRST_LOOK, False
    while True:
        if hurried:
            await asyncio.sleep(pause)
        elif await _is_set_within(pause, asked):
            pause, hurried = AFTER_CANCEL, True
        if await _is_cancelled(task):
            return
        pause = min(pause * GROWTH, LONGEST_PAUSE)


async def _is_set_within(seconds: float, event: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def _is_cancelled(task: WorkflowHandle[Any, Any]) -> bool:
    try:
        found = await task.describe(rpc_timeout=ANSWER_WITHIN)
    except RPCError:
        return False  # whoever waits for the result is told
    return found.typed_search_attributes.get(_STATUS) == "cancelled"

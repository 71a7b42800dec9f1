"""Ends what has to be ended, however often its caller is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


async def undisturbed(ending: Coroutine[Any, Any, Result]) -> Result:
    """Await all of it: a second cancellation must not leave anything behind."""
    task = asyncio.ensure_future(ending)
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            continue
    return task.result()

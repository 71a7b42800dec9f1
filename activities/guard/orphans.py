"""Ends what a dead guard left to the worker, which is a subreaper."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Collection

from toolcrib.activities.guard import guard_tree as tree

SWEEP_PAUSE = 0.02
"""Seconds between two looks for what SIGKILL has not ended yet."""


async def end_orphans(spared: Collection[int]) -> None:
    """Kill all children of this process, except `spared` ones, and all below them; return when none is left."""
    while orphans := [pid for pid in tree.children(os.getpid()) if pid not in spared]:
        tree.send_signals([*orphans, *tree.descendants(orphans)], signal.SIGKILL)
        for pid in orphans:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)  # noqa: ASYNC222 - it does not wait
        await asyncio.sleep(SWEEP_PAUSE)

"""A goal runner whose answers are larger than Temporal takes."""

from __future__ import annotations

from typing import Any

from toolcrib.activities.context import LeaseContext

SIZE = 3_000_000


class Huge:
    """The goal says what is to be huge: `result`, `error` or `message`; the last is a message of progress."""

    async def run(self, goal: str, context: LeaseContext) -> Any:
        """Return, raise or report three megabytes."""
        text = "x" * SIZE
        if goal == "error":
            raise ValueError(text)
        if goal == "message":
            context.progress(0.5, text)
        return text if goal == "result" else None


HUGE = "support.huge:Huge"

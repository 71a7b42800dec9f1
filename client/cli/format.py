"""Words for people: times, durations and where a task is."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from toolcrib.scheduling.views import TaskView

MAX_RESULT: Final = 2_000
MINUTE: Final = 60
HOUR: Final = 3_600
DAY: Final = 86_400


def duration(seconds: float) -> str:
    """Return a duration in at most two units; one that clocks made negative counts as none."""
    whole = max(0, int(seconds))
    if whole < MINUTE:
        return f"{whole}s"
    if whole < HOUR:
        return f"{whole // MINUTE}m{whole % MINUTE:02}s"
    if whole < DAY:
        return f"{whole // HOUR}h{whole % HOUR // MINUTE:02}m"
    return f"{whole // DAY}d{whole % DAY // HOUR:02}h"


def setting(seconds: float) -> str:
    """Return a configured duration, exactly."""
    return f"{seconds:g}s"


def instant(at: datetime | None) -> str | None:
    """Return a time in UTC to the second."""
    return None if at is None else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def since(at: datetime, until: datetime | None = None) -> str:
    """Return how long ago `at` was, or how long before `until`."""
    span: timedelta = (until or datetime.now(UTC)) - at
    return duration(span.total_seconds())


def device(view: TaskView) -> str:
    """Return the device that the task holds or held last, or a dash."""
    return f"{view.host_id}/{view.device_id}" if view.attempt and view.device_id else "-"


def where(view: TaskView) -> str:
    """Return in one line where a task is."""
    if view.status == "queued":
        return f"queued: {view.pending_reason.text}" if view.pending_reason else "queued"
    if view.status == "failed":
        return f"failed: {view.error.message}" if view.error else "failed"
    words: list[str] = [view.status]
    if view.attempt:
        words.append(f"on {device(view)}")
    if view.attempt > 1:
        words.append(f"(attempt {view.attempt})")
    if not view.ended and view.progress is not None:
        words.append(f"{view.progress:.0%}")
    if not view.ended and view.message:
        words.append(view.message)
    return " ".join(words)


def result_text(result: Any) -> str | None:
    """Return a task's result for people: what it wrote if it was a command, else JSON; None if there is nothing."""
    if result is None:
        return None
    if isinstance(result, dict) and isinstance(result.get("output"), str):
        return str(result["output"]).rstrip("\n") or None
    text = json.dumps(result, ensure_ascii=False)
    return text if len(text) <= MAX_RESULT else text[:MAX_RESULT] + "…"

"""Adds to the results of toolcrib's own runners which artifacts the work has left."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import structlog
from pydantic_core import to_json

from toolcrib.activities.context import LeaseContext, WorkResult
from toolcrib.activities.kept_files import LONGEST_LIST, listed
from toolcrib.scheduling.sizes import KIB

MARGIN: Final = 1 * KIB
"""Bytes for the keys that go round a list."""

_log = structlog.get_logger(__name__)


async def with_artifacts(result: Any, context: LeaseContext, longest: int) -> Any:
    """Return a result of toolcrib's own with its artifacts, if there are any, and all others as they are.

    The whole has at most `longest` bytes if the result has; `more_artifacts` says that some were left out. A result
    that leaves no room at all stays as it is.
    """
    if not isinstance(result, WorkResult):
        return result
    folder, room = context.artifacts, longest - MARGIN - len(to_json(result))
    if room < 0:
        return result
    try:
        found = await asyncio.to_thread(listed, folder.parent, [folder.name], longest=min(room, LONGEST_LIST))
    except OSError as error:
        _log.warning("artifacts not listed", lease=context.lease.id, reason=str(error))
        return result
    added: dict[str, Any] = {}
    if found.artifacts:
        added["artifacts"] = [artifact.model_dump() for artifact in found.artifacts]
    if found.more:
        added["more_artifacts"] = True
    return {**result, **added}

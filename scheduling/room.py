"""Whether there is room in a queue."""

from __future__ import annotations

from toolcrib.scheduling.errors import ErrorBody, QueueFull
from toolcrib.scheduling.messages import QueueEntry
from toolcrib.scheduling.pool import PoolState
from toolcrib.scheduling.waiting import MAX_WEIGHT, TaskQueue


def no_room(state: PoolState, queue: TaskQueue, entry: QueueEntry) -> ErrorBody | None:
    """Return why the queue of a pool cannot take one more task; None if it can."""
    depth = state.config.max_queue_depth
    if len(queue) >= depth:
        return QueueFull(f"pool {state.name!r} has {len(queue)} queued tasks, its limit is {depth}").body
    if queue.weight_with(entry.task_id, entry.constraints, entry.avoids) > MAX_WEIGHT:
        return QueueFull(f"the queue of pool {state.name!r} takes more than {MAX_WEIGHT:,} bytes").body
    return None

"""The Python client: submit tasks, follow them, and look after pools.

crib = await Toolcrib.connect()
task = await crib.submit("echo hello")
print(await task.result())
"""

from __future__ import annotations

from toolcrib.client.crib import PartlySubmitted, Toolcrib
from toolcrib.client.group import Group
from toolcrib.client.pool import PoolHandle
from toolcrib.client.task import TaskHandle
from toolcrib.scheduling.errors import (
    IdempotencyConflict,
    InvalidRequest,
    NoConnection,
    NotSetUp,
    QueueFull,
    TaskCancelled,
    TaskEnded,
    TaskFailed,
    ToolcribError,
    UnknownDefinition,
    UnknownPool,
    UnknownStrategy,
    UnknownTask,
    WaitTimeout,
)
from toolcrib.scheduling.request import TaskRequest
from toolcrib.scheduling.views import AttemptView, DeviceView, HostView, PendingReason, PoolView, TaskView

__all__ = [
    "AttemptView",
    "DeviceView",
    "Group",
    "HostView",
    "IdempotencyConflict",
    "InvalidRequest",
    "NoConnection",
    "NotSetUp",
    "PartlySubmitted",
    "PendingReason",
    "PoolHandle",
    "PoolView",
    "QueueFull",
    "TaskCancelled",
    "TaskEnded",
    "TaskFailed",
    "TaskHandle",
    "TaskRequest",
    "TaskView",
    "Toolcrib",
    "ToolcribError",
    "UnknownDefinition",
    "UnknownPool",
    "UnknownStrategy",
    "UnknownTask",
    "WaitTimeout",
]

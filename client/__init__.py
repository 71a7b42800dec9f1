"""The Python client: submit tasks, follow them, and look after pools.

crib = await Toolcrib.connect()
task = await crib.submit("echo hello")
print(await task.result())
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolcrib.activities.runners.works import WorkContext
    from toolcrib.client.crib import PartlySubmitted, Toolcrib
    from toolcrib.client.external import ExternalHandle, ExternalTask
    from toolcrib.client.group import Group, GroupHandle
    from toolcrib.client.pool import PoolHandle
    from toolcrib.client.task import TaskHandle
    from toolcrib.scheduling.errors import (
        HostUnreachable,
        IdempotencyConflict,
        InvalidRequest,
        NoConnection,
        NotSetUp,
        QueueFull,
        TaskCancelled,
        TaskEnded,
        TaskFailed,
        ToolcribError,
        UnknownAttempt,
        UnknownDefinition,
        UnknownDevice,
        UnknownFile,
        UnknownPool,
        UnknownStrategy,
        UnknownTask,
        WaitTimeout,
    )
    from toolcrib.scheduling.host_files import Artifact
    from toolcrib.scheduling.request import TaskRequest
    from toolcrib.scheduling.views import (
        AttemptView,
        DefinitionView,
        DeviceView,
        GroupView,
        HostView,
        PendingReason,
        PoolView,
        TaskView,
    )

__all__ = [
    "Artifact",
    "AttemptView",
    "DefinitionView",
    "DeviceView",
    "ExternalHandle",
    "ExternalTask",
    "Group",
    "GroupHandle",
    "GroupView",
    "HostUnreachable",
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
    "UnknownAttempt",
    "UnknownDefinition",
    "UnknownDevice",
    "UnknownFile",
    "UnknownPool",
    "UnknownStrategy",
    "UnknownTask",
    "WaitTimeout",
    "WorkContext",
]

# Commands that need no server should not pay for loading Temporal's SDK.
_MODULES = {
    "Artifact": "toolcrib.scheduling.host_files",
    "AttemptView": "toolcrib.scheduling.views",
    "DefinitionView": "toolcrib.scheduling.views",
    "DeviceView": "toolcrib.scheduling.views",
    "ExternalHandle": "toolcrib.client.external",
    "ExternalTask": "toolcrib.client.external",
    "Group": "toolcrib.client.group",
    "GroupHandle": "toolcrib.client.group",
    "GroupView": "toolcrib.scheduling.views",
    "HostUnreachable": "toolcrib.scheduling.errors",
    "HostView": "toolcrib.scheduling.views",
    "IdempotencyConflict": "toolcrib.scheduling.errors",
    "InvalidRequest": "toolcrib.scheduling.errors",
    "NoConnection": "toolcrib.scheduling.errors",
    "NotSetUp": "toolcrib.scheduling.errors",
    "PartlySubmitted": "toolcrib.client.crib",
    "PendingReason": "toolcrib.scheduling.views",
    "PoolHandle": "toolcrib.client.pool",
    "PoolView": "toolcrib.scheduling.views",
    "QueueFull": "toolcrib.scheduling.errors",
    "TaskCancelled": "toolcrib.scheduling.errors",
    "TaskEnded": "toolcrib.scheduling.errors",
    "TaskFailed": "toolcrib.scheduling.errors",
    "TaskHandle": "toolcrib.client.task",
    "TaskRequest": "toolcrib.scheduling.request",
    "TaskView": "toolcrib.scheduling.views",
    "Toolcrib": "toolcrib.client.crib",
    "ToolcribError": "toolcrib.scheduling.errors",
    "UnknownAttempt": "toolcrib.scheduling.errors",
    "UnknownDefinition": "toolcrib.scheduling.errors",
    "UnknownDevice": "toolcrib.scheduling.errors",
    "UnknownFile": "toolcrib.scheduling.errors",
    "UnknownPool": "toolcrib.scheduling.errors",
    "UnknownStrategy": "toolcrib.scheduling.errors",
    "UnknownTask": "toolcrib.scheduling.errors",
    "WaitTimeout": "toolcrib.scheduling.errors",
    "WorkContext": "toolcrib.activities.runners.works",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__

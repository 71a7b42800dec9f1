"""The process: settings, the workers of one host or scheduler, and the embedded server.

What others plug into it, runners, drivers and strategies, is written against the names listed here, and tested with
`toolcrib.worker.conformance`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolcrib.activities.context import InfrastructureFailed, LeaseContext, RunFailed, WorkResult
    from toolcrib.activities.drivers import Driver
    from toolcrib.activities.drivers.finding import FoundDevice
    from toolcrib.activities.guard.errors import SpawnFailed
    from toolcrib.activities.held_leases import current_lease
    from toolcrib.activities.runners import GoalRunner, WorkflowRunner
    from toolcrib.activities.runners.command import Command
    from toolcrib.activities.runners.verdict import run_to_verdict
    from toolcrib.scheduling.device import DeviceSpec, PooledDevice
    from toolcrib.scheduling.lease import Lease
    from toolcrib.scheduling.strategies import AssignmentStrategy, Rank, assignment_strategy
    from toolcrib.scheduling.waiting import Waiting
    from toolcrib.workflows.leased import LeasedInput

__all__ = [
    "AssignmentStrategy",
    "Command",
    "DeviceSpec",
    "Driver",
    "FoundDevice",
    "GoalRunner",
    "InfrastructureFailed",
    "Lease",
    "LeaseContext",
    "LeasedInput",
    "PooledDevice",
    "Rank",
    "RunFailed",
    "SpawnFailed",
    "Waiting",
    "WorkResult",
    "WorkflowRunner",
    "assignment_strategy",
    "current_lease",
    "run_to_verdict",
]

_MODULES = {
    "AssignmentStrategy": "toolcrib.scheduling.strategies",
    "Command": "toolcrib.activities.runners.command",
    "DeviceSpec": "toolcrib.scheduling.device",
    "Driver": "toolcrib.activities.drivers",
    "FoundDevice": "toolcrib.activities.drivers.finding",
    "GoalRunner": "toolcrib.activities.runners",
    "InfrastructureFailed": "toolcrib.activities.context",
    "Lease": "toolcrib.scheduling.lease",
    "LeaseContext": "toolcrib.activities.context",
    "LeasedInput": "toolcrib.workflows.leased",
    "PooledDevice": "toolcrib.scheduling.device",
    "Rank": "toolcrib.scheduling.strategies",
    "RunFailed": "toolcrib.activities.context",
    "SpawnFailed": "toolcrib.activities.guard",
    "Waiting": "toolcrib.scheduling.waiting",
    "WorkResult": "toolcrib.activities.context",
    "WorkflowRunner": "toolcrib.activities.runners",
    "assignment_strategy": "toolcrib.scheduling.strategies",
    "current_lease": "toolcrib.activities.held_leases",
    "run_to_verdict": "toolcrib.activities.runners.verdict",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__

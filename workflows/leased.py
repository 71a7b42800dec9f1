"""What a workflow that runs under a lease is told, as its one argument."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class LeasedDevice:
    """The device that the workflow has to itself, as its host describes it."""

    id: str
    driver: str
    driver_type: str
    tags: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LeasedInput:
    """A lease, and what is to be done under it."""

    task_id: str
    attempt: int
    """Number of this attempt, from 1."""
    lease_id: str
    fencing: int
    """Grows with every lease of the pool."""
    host_id: str
    device: LeasedDevice
    deadline: float
    """When the time limit ends the work, in unix seconds."""
    inputs: dict[str, Any] = field(default_factory=dict)
    """As submitted with the task."""
    environment: dict[str, str] = field(default_factory=dict)
    """`TOOLCRIB_*` and what the device's driver adds, for processes that activities start."""

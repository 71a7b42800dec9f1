"""Contexts of leases for tests of runners and drivers."""

from __future__ import annotations

import os
from pathlib import Path

from toolcrib.activities.attempt_log import AttemptLog
from toolcrib.activities.context import LeaseContext
from toolcrib.activities.guard import Guard
from toolcrib.activities.progress import ProgressReporter
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.keeping import LOG_LIMIT
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import Progress


async def _told_nobody(report: Progress) -> None:
    """Take a report of progress that nothing is done with."""


def lease_context(guard: Guard, folder: Path) -> LeaseContext:
    """Return the context of a lease whose work and artifacts live in `folder`."""
    (folder / "work").mkdir()
    (folder / "artifacts").mkdir()
    return LeaseContext(
        lease=Lease(
            task_id="task-1",
            attempt=1,
            host_id="host",
            device_id="slot-1",
            fencing=7,
            assigned_at=0.0,
            claim_by=30.0,
            ttl=30.0,
        ),
        device=DeviceSpec(id="slot-1", driver="local", driver_type="local"),
        guard=guard,
        reporter=ProgressReporter("task-1.1.7", _told_nobody),
        folder=folder / "work",
        artifacts=folder / "artifacts",
        log=AttemptLog(folder / "log", LOG_LIMIT),
        deadline=1e12,
        environment=dict(os.environ),
    )

"""The dozen tasks of the demo, and how each should end."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from toolcrib.scheduling.request import TaskRequest
from toolcrib.scheduling.views import TaskView

POOL: Final = "demo"
HOSTS: Final = {
    "bench-a": (("slot-1", ["linux"]), ("slot-2", ["linux", "usb"])),
    "bench-b": (("slot-1", ["linux"]), ("slot-2", ["linux", "camera"])),
}
"""Devices by host, each with its tags."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A task of the demo."""

    name: str
    goal: str
    tags: tuple[str, ...] = ()
    ends: Literal["done", "failed"] = "done"
    host: str | None = None
    """Where it has to run, if only one host fits."""
    waits: bool = False
    """Whether its device is taken when it is submitted."""

    @property
    def request(self) -> TaskRequest:
        """What is submitted."""
        return TaskRequest(name=self.name, goal=self.goal, tags=self.tags, pool=POOL)


JOBS: Final = (
    Job(name="record a video", goal="sleep 3; echo 12 s recorded", tags=("camera",), host="bench-b"),
    Job(name="flash the board", goal="sleep 2; echo flashed $TOOLCRIB_DEVICE_ID", tags=("usb",), host="bench-a"),
    Job(name="unit tests", goal="sleep 1; echo 214 passed"),
    Job(name="type check", goal="sleep 1.5; echo no issues"),
    Job(name="take a photo", goal="echo photo.png", tags=("camera",), host="bench-b", waits=True),
    Job(name="broken test", goal="echo 'expected 2, got 3'; exit 3", ends="failed"),
    Job(name="lint", goal="echo clean"),
    Job(name="build docs", goal="sleep 1; echo 31 pages"),
    Job(name="long soak", goal="sleep 4; echo stable"),
    Job(name="integration tests", goal="sleep 2; echo 48 passed"),
    Job(name="read the sensor", goal="sleep 0.5; echo 21.5 C", tags=("usb",), host="bench-a", waits=True),
    Job(name="package", goal="sleep 1; echo wheel built"),
)


def faults(job: Job, view: TaskView) -> list[str]:
    """Return what went otherwise than it should."""
    found = []
    if view.status != job.ends:
        found.append(f"{job.name}: ended as {view.status}, not {job.ends}")
    if job.host is not None and view.host_id != job.host:
        found.append(f"{job.name}: ran on {view.host_id}, not {job.host}")
    if job.waits and waited(view) < 0.5:
        found.append(f"{job.name}: did not wait for its device")
    return found


def overlaps(views: Iterable[TaskView]) -> list[str]:
    """Return pairs of tasks that were on one device at the same time."""
    runs = sorted(
        (f"{v.host_id}/{v.device_id}", v.started_at, v.finished_at, v.name)
        for v in views
        if v.started_at and v.finished_at
    )
    pairs = itertools.pairwise(runs)
    return [f"{a[3]} and {b[3]} were on {a[0]} at once" for a, b in pairs if a[0] == b[0] and b[1] < a[2]]


def waited(view: TaskView) -> float:
    """Return for how many seconds the task waited for its device, or its whole life if it never got one."""
    until = view.started_at or view.finished_at
    return (until - view.created_at).total_seconds() if until else 0.0


def ran(view: TaskView) -> float | None:
    """Return for how many seconds it ran; None if it does not or did not run to its end."""
    if view.started_at is None or view.finished_at is None:
        return None
    return (view.finished_at - view.started_at).total_seconds()

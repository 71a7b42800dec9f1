"""What people and programs see of tasks and pools. These shapes are public: see docs/json.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, overload

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, SerializerFunctionWrapHandler, model_serializer

from toolcrib.scheduling.errors import ErrorBody

Timestamp = Annotated[
    datetime,
    PlainSerializer(lambda at: at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")),
]
"""RFC 3339 in UTC, in JSON."""

Status = Literal["queued", "assigned", "dispatched", "done", "failed", "cancelled"]
State = Literal["pending", "running", "completed", "failed", "cancelled"]

STATE_OF: dict[str, State] = {
    "queued": "pending",
    "assigned": "pending",
    "dispatched": "running",
    "done": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}
"""The second vocabulary: the same states in the words of background tasks."""

_LEFT_OUT_WHEN_UNSET = ("work", "progress", "message", "group_id", "group_name")


@overload
def moment(at: float) -> datetime: ...
@overload
def moment(at: None) -> None: ...
@overload
def moment(at: float | None) -> datetime | None: ...
def moment(at: float | None) -> datetime | None:
    """Return unix seconds as a UTC time."""
    return None if at is None else datetime.fromtimestamp(at, UTC)


class View(BaseModel):
    """Base of the views."""

    model_config = ConfigDict(frozen=True)


class PendingReason(View):
    """Why a queued task waits."""

    code: Literal[
        "no_such_device", "all_busy", "cap", "out_of_service", "offline", "quarantined", "resting", "in_line", "backoff"
    ]
    text: str


class AttemptView(View):
    """One attempt of a task."""

    number: int
    host_id: str
    device_id: str
    lease_id: str
    fencing: int
    outcome: Literal["done", "failed", "expired", "returned", "cancelled", "refused"] | None = None
    reason: str | None = None
    assigned_at: Timestamp
    expires_at: Timestamp
    """Until when it may be claimed; once claimed, the lease is renewed instead."""
    claimed_at: Timestamp | None = None
    ended_at: Timestamp | None = None


class TaskView(View):
    """A task: what was asked, where it is, and how it went."""

    id: str
    name: str
    status: Status
    state: State
    pool: str
    priority: int
    goal: str | None = None
    workflow: str | None = None
    work: str | None = None
    inputs: dict[str, Any] = Field(default_factory=dict)
    driver_type: str | None = None
    tags: list[str] = Field(default_factory=list)
    device_id: str | None = None
    """The device it holds or last held; before that, the one it asked for."""
    host_id: str | None = None
    attempt: int = 0
    attempts: list[AttemptView] = Field(default_factory=list)
    progress: float | None = None
    message: str | None = None
    group_id: str | None = None
    group_name: str | None = None
    created_at: Timestamp
    started_at: Timestamp | None = None
    finished_at: Timestamp | None = None
    result: Any = None
    error: ErrorBody | None = None
    pending_reason: PendingReason | None = None

    @model_serializer(mode="wrap")
    def _omit_unset(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = dump(self)
        return {name: value for name, value in data.items() if value is not None or name not in _LEFT_OUT_WHEN_UNSET}

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self.status in {"done", "failed", "cancelled"}


class DeviceView(View):
    """A device of a pool."""

    key: str
    id: str
    host_id: str
    driver_type: str
    tags: list[str]
    properties: dict[str, str] = Field(default_factory=dict)
    state: Literal["idle", "leased", "releasing", "resting", "quarantined", "offline"]
    in_service: bool
    reason: str | None = None
    task_id: str | None = None
    lease_id: str | None = None
    fencing: int | None = None
    since: Timestamp


class HostView(View):
    """A host of a pool; `draining` while it takes no new work, but some is still under way."""

    id: str
    state: Literal["online", "offline", "draining"]
    in_service: bool
    incarnation: int
    last_seen: Timestamp | None
    """Null: it has not registered yet."""
    public_key: str | None = None
    """That it was enrolled with; null: it is not enrolled, or no longer."""
    workflows: list[str] | None = None
    """The references that it says it runs; null: it does not say, and anything may be tried."""


class DefinitionView(View):
    """A workflow that hosts of a pool say they run."""

    reference: str
    """As a task asks for exactly this one: `name@version`, or `name` if it has no version."""
    name: str
    version: str | None
    hosts: list[str]


class QueuedView(View):
    """A place in the queue."""

    id: str
    position: int
    priority: int
    submitted_at: Timestamp
    pending_reason: PendingReason


class PoolView(View):
    """A pool: its settings, devices, hosts and queue."""

    name: str
    strategy: str
    max_concurrent: int | None
    max_queue_depth: int
    claim_timeout: float
    lease_ttl: float
    max_attempts: int
    queued: int
    leased: int
    devices: list[DeviceView]
    hosts: list[HostView]
    problem: str | None = None
    """Why the pool grants nothing, if its strategy raised."""
    opens_at: Timestamp | None = None
    """Until when a pool that was rebuilt grants nothing."""
    queue: list[QueuedView]
    """The first 200; `queued` counts them all."""


class GroupView(View):
    """How a group of tasks is getting on."""

    id: str
    name: str | None = None
    counts: dict[State, int]
    """How many of its tasks are in which state; states without any are left out."""
    progress: float | None
    """The mean of its tasks' progress, where one that has not reported any counts as 0; null without tasks."""

    @property
    def ended(self) -> bool:
        """Whether all of its tasks have ended."""
        return not any(self.counts.get(state) for state in ("pending", "running"))


def group_view(group_id: str, views: Sequence[TaskView]) -> GroupView:
    """Return how the group of these tasks is getting on."""
    counts = Counter(view.state for view in views)
    return GroupView(
        id=group_id,
        name=next((view.group_name for view in views if view.group_name), None),
        counts={state: counts[state] for state in dict.fromkeys(STATE_OF.values()) if counts[state]},
        progress=sum(view.progress or 0.0 for view in views) / len(views) if views else None,
    )

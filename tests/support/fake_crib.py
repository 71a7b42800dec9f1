"""A client with prepared answers, for tests of what the command line makes of them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from toolcrib.scheduling.definition_views import definition_views
from toolcrib.scheduling.errors import ToolcribError, UnknownDevice, UnknownTask
from toolcrib.scheduling.host_files import Artifact
from toolcrib.scheduling.views import AttemptView, DefinitionView, DeviceView, HostView, PoolView, TaskView

CREATED = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def task_view(task_id: str = "task-1", status: str = "queued", **changes: Any) -> TaskView:
    """Return a view of a task in `status`."""
    states = {"queued": "pending", "assigned": "pending", "dispatched": "running", "done": "completed"}
    given = {"name": "echo hello", "goal": "echo hello", "pool": "default", "priority": 3, "created_at": CREATED}
    if status in {"done", "failed", "cancelled"}:
        given |= {"started_at": CREATED + timedelta(seconds=5), "finished_at": CREATED + timedelta(seconds=70)}
    return TaskView.model_validate(
        {**given, "id": task_id, "status": status, "state": states.get(status, status), **changes}
    )


def attempt_view(number: int = 1, **changes: Any) -> AttemptView:
    """Return a view of an attempt on `lab/slot-1`."""
    given = {
        "number": number,
        "host_id": "lab",
        "device_id": "slot-1",
        "lease_id": f"task-1.{number}.7",
        "fencing": 7,
        "assigned_at": CREATED,
        "expires_at": CREATED,
    }
    return AttemptView.model_validate({**given, **changes})


def pool_view(**changes: Any) -> PoolView:
    """Return a view of an empty pool."""
    given = {
        "name": "default",
        "strategy": "fifo_match",
        "max_concurrent": 3,
        "max_queue_depth": 1000,
        "claim_timeout": 30,
        "lease_ttl": 15,
        "max_attempts": 3,
        "queued": 0,
        "leased": 0,
        "devices": [],
        "hosts": [],
        "queue": [],
    }
    return PoolView.model_validate({**given, **changes})


@dataclass
class FakeHandle:
    """A task that goes through prepared views."""

    id: str
    views: Sequence[TaskView] = ()
    refusal: ToolcribError | None = None
    stays: bool = False
    """Whether a watch of it never ends."""
    interrupts: bool = False
    """Whether Ctrl-C is pressed when its views have been shown."""
    cancelled: bool = False
    log: Sequence[bytes] = ()
    """What its attempts have printed: the first piece is the first one's, and so on."""
    left: dict[str, bytes] = field(default_factory=dict)
    """Its artifacts."""
    asked: list[tuple[int | None, bool]] = field(default_factory=list)
    """Which logs were asked for, and whether they were followed."""

    async def status(self) -> TaskView:
        """Return the last view, or raise that the task is unknown."""
        if not self.views:
            raise UnknownTask.named(self.id)
        return self.views[-1]

    async def watch(self, **_: Any) -> AsyncIterator[TaskView]:
        """Yield the views."""
        if not self.views:
            raise UnknownTask.named(self.id)
        for view in self.views:
            yield view
        if self.interrupts:
            signal.raise_signal(signal.SIGINT)
        if self.stays or self.interrupts:
            await asyncio.Event().wait()

    async def logs(
        self,
        attempt: int | None = None,
        *,
        follow: bool = False,
        on_attempt: Callable[[AttemptView], None],
        on_silence: Callable[[str], None],
    ) -> AsyncGenerator[bytes]:
        """Yield the log of each attempt, the host of the last of which needs to be waited for."""
        self.asked.append((attempt, follow))
        if not self.views:
            raise UnknownTask.named(self.id)
        for number, printed in enumerate(self.log, 1):
            on_attempt(attempt_view(number))
            if number == len(self.log) > 1:
                on_silence("lab")
            yield printed
        if self.interrupts:
            signal.raise_signal(signal.SIGINT)
            await asyncio.Event().wait()
        if self.refusal:
            raise self.refusal

    async def artifacts(self, attempt: int | None = None) -> list[Artifact]:
        """Return what it has left."""
        return [Artifact(path=path, bytes=len(content)) for path, content in self.left.items()]

    async def artifact(self, path: str, attempt: int | None = None) -> AsyncIterator[bytes]:
        """Yield an artifact byte by byte, and then refuse if that is prepared."""
        for byte in self.left[path]:
            yield bytes([byte])
        if self.refusal:
            raise self.refusal

    async def cancel(self) -> None:
        """Be cancelled, refuse, or raise that the task is unknown."""
        if not self.views:
            raise UnknownTask.named(self.id)
        if self.refusal:
            raise self.refusal
        self.cancelled = True


@dataclass
class FakePool:
    """A pool that remembers what it was told."""

    name: str
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    view: PoolView = field(default_factory=pool_view)

    async def create(self, **options: Any) -> None:
        """Remember the settings."""
        self.calls.append(("create", options))

    async def configure(self, **options: Any) -> None:
        """Remember the settings."""
        self.calls.append(("configure", options))

    async def show(self) -> PoolView:
        """Return the prepared view."""
        return self.view

    async def definitions(self) -> list[DefinitionView]:
        """Return what they say they run."""
        return definition_views(self.view.hosts)

    async def assign(self) -> int:
        """Grant two."""
        return 2

    async def devices(self) -> list[DeviceView]:
        """Return the devices of the prepared view."""
        return self.view.devices

    async def device(self, key: str) -> DeviceView:
        """Return one of them, or raise that it is unknown."""
        for view in self.view.devices:
            if view.key == key:
                return view
        raise UnknownDevice.named("device", key, self.name)

    async def drain_device(self, key: str) -> DeviceView:
        """Remember it, and return the device out of service."""
        return await self._ordered("drain_device", key, in_service=False)

    async def resume_device(self, key: str) -> DeviceView:
        """Remember it, and return the device as it is."""
        return await self._ordered("resume_device", key)

    async def quarantine_device(self, key: str, reason: str) -> DeviceView:
        """Remember it, and return the device quarantined."""
        return await self._ordered("quarantine_device", key, state="quarantined", reason=reason)

    async def hosts(self) -> list[HostView]:
        """Return the hosts of the prepared view."""
        return self.view.hosts

    async def drain_host(self, host_id: str) -> HostView:
        """Remember it, and return the first host, which is draining."""
        self.calls.append(("drain_host", {"host_id": host_id}))
        return self.view.hosts[0].model_copy(update={"state": "draining", "in_service": False})

    async def resume_host(self, host_id: str) -> HostView:
        """Remember it, and return the first host."""
        self.calls.append(("resume_host", {"host_id": host_id}))
        return self.view.hosts[0]

    async def _ordered(self, call: str, key: str, **changes: Any) -> DeviceView:
        found = await self.device(key)
        self.calls.append((call, {"key": key, **changes}))
        return found.model_copy(update=changes)


@dataclass
class FakeCrib:
    """What `connect` gives to the commands."""

    handles: dict[str, FakeHandle] = field(default_factory=dict)
    known_pools: dict[str, FakePool] = field(default_factory=dict)
    submitted: list[dict[str, Any]] = field(default_factory=list)
    refusal: Exception | None = None
    asked: dict[str, Any] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)
    """The names of pools that were ended."""

    def add(self, handle: FakeHandle) -> FakeHandle:
        """Let it have this task."""
        self.handles[handle.id] = handle
        return handle

    async def submit(self, goal: str | None = None, **request: Any) -> FakeHandle:
        """Remember the request and return the first task."""
        if self.refusal:
            raise self.refusal
        self.submitted.append({"goal": goal, **request})
        return next(iter(self.handles.values()))

    def task(self, task_id: str) -> FakeHandle:
        """Return the task, which may be unknown."""
        return self.handles.get(task_id) or FakeHandle(task_id)

    async def tasks(self, **query: Any) -> list[TaskView]:
        """Return the last view of each task that is in the state that is asked for."""
        self.asked = query
        views = [handle.views[-1] for handle in self.handles.values()]
        return [view for view in views if query.get("state") in (None, view.state)]

    async def watch(self, task_ids: Sequence[str], **_: Any) -> AsyncIterator[TaskView]:
        """Yield the views of these tasks, one after another; those of unknown ones first, which raises."""
        for handle in sorted(map(self.task, task_ids), key=lambda handle: bool(handle.views)):
            async for view in handle.watch():
                yield view

    def pool(self, name: str | None = None) -> FakePool:
        """Return the pool."""
        return self.known_pools.setdefault(name or "default", FakePool(name or "default"))

    async def pools(self) -> list[PoolView]:
        """Return the views of the pools that were asked for before."""
        return [pool.view for pool in self.known_pools.values()]

    async def ended_pools(self) -> list[str]:
        """Return the prepared names."""
        return self.ended

    async def strategies(self) -> list[str]:
        """Return two names."""
        return ["fifo_match", "priority_fifo"]

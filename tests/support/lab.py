"""A small lab inside the test's process: a real scheduler and real hosts, on the test's own namespace."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import Client
from temporalio.service import RPCError

from toolcrib.activities.host_keys import HostKeyPair, load_or_create_key
from toolcrib.activities.pool_link import PoolLinks
from toolcrib.activities.progress import THROTTLE
from toolcrib.client import TaskHandle, TaskView, Toolcrib, UnknownPool
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.keeping import Keep
from toolcrib.scheduling.messages import HostKey, HostSnapshot
from toolcrib.scheduling.views import PoolView
from toolcrib.worker.host_agent import HostAgent
from toolcrib.worker.host_file import HostFile
from toolcrib.worker.host_role import host_role
from toolcrib.worker.plugins import load_plugins
from toolcrib.worker.runner_names import RunnerNames

Answer = TypeVar("Answer")

PATIENCE = 30.0
"""Seconds after which a test gives up waiting for what should have happened long before."""


def slot(device_id: str = "slot-1", *, driver_type: str = "local", tags: Sequence[str] = ()) -> DeviceSpec:
    """Describe a slot of a host."""
    return DeviceSpec(id=device_id, driver="local", driver_type=driver_type, tags=tuple(tags))


@dataclass(frozen=True)
class Lab:
    """A running scheduler, and the means to add hosts and pools."""

    client: Client
    crib: Toolcrib
    folder: Path

    async def pool(self, name: str = "lab", **options: Any) -> Toolcrib:
        """Create a pool, without a cap unless one is given, and return a client that submits to it."""
        crib = Toolcrib(self.client, pool=name)
        await crib.pool().create(**{"max_concurrent": None, **options})
        return crib

    @asynccontextmanager
    async def host(
        self,
        host_id: str = "lab-1",
        devices: Sequence[DeviceSpec] = (slot(),),
        *,
        pool: str = "lab",
        goal: str | None = "shell",
        workflow: str | None = None,
        drain: float = 0.0,
        machine: str = "here",
        throttle: float = THROTTLE,
        plugins: Sequence[str] = (),
        definitions: Path | None = None,
        keep: Keep | None = None,
    ) -> AsyncIterator[HostAgent]:
        """Run a host that is registered with its pool; `goal` and `workflow` name its runners.

        On another `machine` it has the same key, and no locks or files in common.
        """
        runners = RunnerNames(goal=goal, workflow=workflow)
        file = HostFile(
            id=host_id,
            devices=tuple(devices),
            pool=pool,
            runners=runners,
            definitions=definitions,
            progress_throttle=throttle,
            keep=keep or Keep(),
        )
        await self.enroll(host_id, pool=pool)
        home = self.folder / machine / host_id
        shutil.copytree(self.folder / "keys", home / "keys", dirs_exist_ok=True)
        locks = self.folder / machine / "locks"
        brought = load_plugins(plugins)
        async with host_role(self.client, file, home, drain=drain, locks=locks, plugins=brought) as agent:
            async with asyncio.timeout(PATIENCE):
                await agent.registered.wait()
            yield agent

    def key(self, host_id: str = "lab-1") -> HostKeyPair:
        """Return the key of a host."""
        return load_or_create_key(self.folder, host_id)

    async def enroll(self, host_id: str = "lab-1", *, pool: str = "lab") -> HostKeyPair:
        """Enroll a host in a pool, as soon as there is one, and return its key."""
        key = self.key(host_id)
        order = HostKey(host_id=host_id, public_key=key.public)

        async def enrolled() -> bool:
            try:
                await PoolLinks(self.client).to(pool).enroll(order)
            except UnknownPool:
                return False
            return True

        await eventually(enrolled, bool)
        return key

    async def register_only(
        self,
        host_id: str = "lab-1",
        devices: Sequence[DeviceSpec] = (slot(),),
        *,
        pool: str = "lab",
        workflows: Sequence[str] | None = None,
    ) -> None:
        """Bring a host's devices into a pool without a worker behind them: whoever gets one stays assigned.

        Of its slots it says which `workflows` they run, or nothing.
        """
        key = await self.enroll(host_id, pool=pool)
        link = PoolLinks(self.client).to(pool)
        serial = (await link.standing(host_id)).serial + 1
        said = {} if workflows is None else {"local": tuple(workflows)}
        snapshot = HostSnapshot(
            host_id=host_id, instance="no-worker", devices=tuple(devices), serial=serial, workflows=said
        )
        await link.register(key.signed_snapshot(snapshot, pool))


async def until(task: TaskHandle, fits: Callable[[TaskView], bool]) -> TaskView:
    """Return the task's view as soon as it `fits`."""
    return await eventually(task.status, fits)


async def until_status(task: TaskHandle, *statuses: str) -> TaskView:
    """Return the task's view as soon as it has one of these statuses."""
    return await until(task, lambda view: view.status in statuses)


async def until_begun(client: Client, workflow_id: str) -> None:
    """Return as soon as a worker has begun the activity of a workflow: a task's lease, or a host's presence."""

    async def states() -> list[int]:
        try:
            found = await client.get_workflow_handle(workflow_id).describe()
        except RPCError:
            return []
        return [pending.state for pending in found.raw_description.pending_activities]

    await eventually(states, lambda found: PendingActivityState.PENDING_ACTIVITY_STATE_STARTED in found)


async def until_pool(crib: Toolcrib, fits: Callable[[PoolView], bool]) -> PoolView:
    """Return the pool's view as soon as there is one and it `fits`."""

    async def show() -> PoolView | None:
        try:
            return await crib.pool().show()
        except UnknownPool:
            return None

    view = await eventually(show, lambda view: view is not None and fits(view))
    assert view is not None
    return view


async def eventually(ask: Callable[[], Awaitable[Answer]], fits: Callable[[Answer], bool]) -> Answer:
    """Ask until the answer `fits`, and return it; the last answer is in the error if none does."""
    answer: Any = None
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                found = answer = await ask()
                if fits(found):
                    return found
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"still not so after {PATIENCE} s: {answer}") from None

"""Toolcrib: the client's entry point."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeVar

from temporalio.client import Client

from toolcrib.activities.pool_link import PoolLinks
from toolcrib.activities.pools import ended_pools, find_pools
from toolcrib.activities.runners.works import Works
from toolcrib.client.external import ExternalHandle, ExternalTask
from toolcrib.client.group import Group, GroupHandle, checked_group
from toolcrib.client.listing import list_tasks
from toolcrib.client.pool import PoolHandle
from toolcrib.client.submission import Submission, check_requests
from toolcrib.client.task import TaskHandle
from toolcrib.client.watching import Watch
from toolcrib.scheduling.errors import InvalidRequest, QueueFull, ToolcribError, UnknownPool
from toolcrib.scheduling.external import parse_external
from toolcrib.scheduling.names import DEFAULT_POOL
from toolcrib.scheduling.request import TaskRequest, parse_request
from toolcrib.scheduling.views import PoolView, State, Status, TaskView

if TYPE_CHECKING:
    from toolcrib.worker.application import ApplicationWorker

Registered = TypeVar("Registered", bound=Callable[..., Any])

SLOTS: Final = 3
"""As many as a pool runs at once by default."""
DRAIN: Final = 10.0
"""Seconds that works get to finish in when their worker ends."""
SLICE: Final = 100
"""Requests admitted together: few enough that all of them are started while their admissions are fresh."""


class PartlySubmitted(QueueFull):
    """Some of many requests were refused; `handles` has the others' tasks, and None for the refused."""

    def __init__(self, handles: list[TaskHandle | None], refusal: ToolcribError) -> None:
        refused = handles.count(None)
        super().__init__(
            f"{refused} of {len(handles)} requests were refused: {refusal.message}",
            hint=refusal.hint,
            code=refusal.error_code,
        )
        self.handles = handles


class Toolcrib:
    """A connection to toolcrib's pools. Make it with `connect`, or from a Temporal client that you have.

    Such a client needs `data_converter=temporalio.contrib.pydantic.pydantic_data_converter`.
    """

    def __init__(self, client: Client, *, pool: str = DEFAULT_POOL) -> None:
        self._client = client
        self._links = PoolLinks(client)
        self._pool = pool
        self._works = Works()

    @classmethod
    async def connect(
        cls, address: str | None = None, *, namespace: str | None = None, pool: str = DEFAULT_POOL
    ) -> Toolcrib:
        """Connect to the Temporal server at `address` (HOST:PORT), else as `TEMPORAL_*` and its profiles say.

        Raises:
            NoConnection: nothing answers there, or the address is malformed.
            NotSetUp: the namespace or toolcrib's search attributes are missing.
        """
        from toolcrib.worker.connection import connect

        return cls(await connect(address, namespace=namespace), pool=pool)

    async def submit(
        self,
        goal: str | None = None,
        *,
        workflow: str | None = None,
        work: str | None = None,
        inputs: dict[str, Any] | None = None,
        name: str | None = None,
        driver_type: str | None = None,
        tags: Iterable[str] = (),
        device_id: str | None = None,
        host_id: str | None = None,
        priority: int = 3,
        pool: str | None = None,
        group: Group | str | None = None,
        key: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - of the task, not of this call
        queue_timeout: float | None = None,
        max_attempts: int | None = None,
    ) -> TaskHandle:
        """Submit a goal, a workflow by its `NAME` or `NAME@VERSION`, or a work; returns without waiting for a device.

        Args:
            goal: what to do, for the host's goal runner; with the runner `shell` a command line.
            workflow: a workflow definition, for the host's workflow runner.
            work: a function that an application has registered with `work`; it waits for a slot of such an application.
            inputs: the workflow's or work's inputs, as JSON data.
            name: to show; by default the goal, shortened.
            driver_type: the device has to be of this type.
            tags: the device has to have all of these.
            device_id: the device's id on its host has to be this.
            host_id: the device has to be this host's.
            priority: 1 (first) to 5, for strategies that look at it.
            pool: by default the connection's.
            group: tasks to list or cancel together, by the group's id or a `Group`, which may have a name.
            key: makes the submission idempotent: the same key returns the same task.
            timeout: seconds that an attempt may run; 24 hours by default.
            queue_timeout: seconds after which a task that still waits fails.
            max_attempts: by default the pool's.

        Raises:
            InvalidRequest: a field is malformed; nothing was created.
            QueueFull: the pool's queue is at its limit; nothing was created.
            UnknownPool: there is no such pool; nothing was created.
            IdempotencyConflict: `key` belongs to a task with other content.
        """
        belongs = checked_group(group)
        given = {
            "goal": goal,
            "workflow": workflow,
            "work": work,
            "inputs": inputs,
            "name": name,
            "driver_type": driver_type,
            "tags": tags if isinstance(tags, str) or not isinstance(tags, Iterable) else list(tags),
            "device_id": device_id,
            "host_id": host_id,
            "priority": priority,
            "pool": self._pool if pool is None else pool,
            "group_id": belongs.id if belongs else None,
            "group_name": belongs.name if belongs else None,
            "timeout": timeout,
            "queue_timeout": queue_timeout,
            "max_attempts": max_attempts,
        }
        request = parse_request({field: value for field, value in given.items() if value is not None})
        return await self._submit(request, key)

    async def submit_many(self, requests: Sequence[TaskRequest]) -> list[TaskHandle]:
        """Submit many requests, in their order, in far less time than one by one.

        Raises:
            InvalidRequest: one is no `TaskRequest`; none was submitted.
            PartlySubmitted: some were refused; it has the handles of the others.
        """
        check_requests(requests)
        handles: list[TaskHandle | None] = []
        refusal: ToolcribError | None = None
        for start in range(0, len(requests), SLICE):
            part = (self._submit(request) for request in requests[start : start + SLICE])
            for answer in await asyncio.gather(*part, return_exceptions=True):
                if isinstance(answer, ToolcribError):
                    refusal = answer
                elif isinstance(answer, BaseException):
                    raise answer
                handles.append(answer if isinstance(answer, TaskHandle) else None)
        if refusal is not None:
            raise PartlySubmitted(handles, refusal)
        return [handle for handle in handles if handle is not None]

    def task(self, task_id: str) -> TaskHandle:
        """Return a handle on the task with that id; whether there is one shows when it is used."""
        return TaskHandle(self._client, task_id)

    async def tasks(
        self,
        *,
        status: Status | None = None,
        state: State | None = None,
        pool: str | None = None,
        group: Group | str | None = None,
        limit: int = 100,
    ) -> list[TaskView]:
        """Return tasks, the newest first; one submitted within the last second may still be missing.

        Raises:
            InvalidRequest: a condition is malformed.
            UnknownPool: there is no such pool, and no task of it.
        """
        belongs = checked_group(group)
        group_id = belongs.id if belongs else None
        found = await list_tasks(self._client, status=status, state=state, pool=pool, group=group_id, limit=limit)
        if pool is not None and not found:
            await self.pool(pool).check_exists()
        return found

    async def watch(
        self, task_ids: Sequence[str], *, on_silence: Callable[[], None] | None = None
    ) -> AsyncGenerator[TaskView]:
        """Yield each of these tasks now, and again whenever it has changed, until all have ended.

        Up to 20 tasks are looked at four times a second, more of them less often: 80 looks a second in all. It goes on
        when the server or its schedulers are away for a while; `on_silence` is called when it has to wait.

        Raises:
            UnknownTask: there is no such task.
        """
        async with aclosing(Watch(self._client, on_silence).together(task_ids)) as views:
            async for view in views:
                yield view

    async def pools(self) -> list[PoolView]:
        """Return the pools, by name; one created within the last second may still be missing."""
        names = sorted([found.name async for found in find_pools(self._client)])
        views = await asyncio.gather(*(self.pool(name).show() for name in names), return_exceptions=True)
        for view in views:
            if isinstance(view, BaseException) and not isinstance(view, UnknownPool):
                raise view
        return [view for view in views if isinstance(view, PoolView)]

    async def ended_pools(self) -> list[str]:
        """Return the names of pools that somebody ended, by terminating their workflow, and nobody created again."""
        return await ended_pools(self._client)

    def work(self, name: str) -> Callable[[Registered], Registered]:
        """Register the decorated function, async or not, as a work that `worker` runs and `submit(work=name)` asks for.

        It gets the task's inputs by name, and its `WorkContext` if it has a parameter `context`. What it returns, JSON
        data, is the result; what it raises, the task's error. It runs in a thread of its own, an async one on an event
        loop of its own. If the task is cancelled, an async function gets `asyncio.CancelledError`, another one at its
        next `context.progress`; one that does not end then keeps its slot until it does.

        Raises:
            InvalidRequest: the name is malformed or taken.
        """

        def register(function: Registered) -> Registered:
            self._works.add(name, function)
            return function

        return register

    def worker(
        self, *, slots: int = SLOTS, host_id: str | None = None, drain_timeout: float = DRAIN
    ) -> ApplicationWorker:
        """Return a worker that runs the works registered so far, in this process, as long as its context is open.

        Args:
            slots: how many run at once, if the pool's cap lets them.
            host_id: by default `app-` and the machine's name; each application of a machine needs its own.
            drain_timeout: seconds that works get to finish in at the end; others are given back, and run again later.

        Raises:
            InvalidRequest: an argument is wrong, no work is registered, or the host's key or home cannot be used.
            UnknownPool: there is no such pool.
            NoConnection: no scheduler answers.
            NotEnrolled: the host's key was revoked.
            HostRunsAlready, HostSuperseded: another process serves the host.
            GuardLost: a process of the worker's is gone.
        """
        from toolcrib.worker.application import ApplicationWorker

        return ApplicationWorker(
            self._client, self._works, self._pool, slots=slots, host_id=host_id, drain=drain_timeout
        )

    def external(self, name: str, *, group: Group | str | None = None, pool: str | None = None) -> ExternalTask:
        """Return a task that runs elsewhere, to be used as `async with`, or to be started; it takes no device.

        Raises:
            InvalidRequest: the name or the group is malformed.
        """
        belongs = checked_group(group)
        given = {
            "name": name,
            "pool": self._pool if pool is None else pool,
            "group_id": belongs.id if belongs else None,
            "group_name": belongs.name if belongs else None,
        }
        request = parse_external({field: value for field, value in given.items() if value is not None})
        return ExternalTask(self._client, request)

    def external_task(self, task_id: str) -> ExternalHandle:
        """Return a handle on an external task, in whatever process it was started."""
        return ExternalHandle(self._client, task_id)

    def group(self, group_id: Group | str) -> GroupHandle:
        """Return a handle on the tasks with that group id.

        Raises:
            InvalidRequest: it is none.
        """
        group = checked_group(group_id)
        if group is None:
            raise InvalidRequest("group: give its id")
        return GroupHandle(self, group.id)

    def pool(self, name: str | None = None) -> PoolHandle:
        """Return a handle on a pool, by default the connection's."""
        return PoolHandle(self._client, self._links, self._pool if name is None else name)

    async def strategies(self) -> list[str]:
        """Return the assignment strategies that the scheduler knows."""
        return await self.pool(DEFAULT_POOL).strategies()

    async def _submit(self, request: TaskRequest, key: str | None = None) -> TaskHandle:
        submission = Submission(self._client, self._links, request, key)
        await submission.submit()
        return TaskHandle(self._client, submission.task_id)

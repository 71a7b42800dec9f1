"""The scheduler role: pools, tasks, and the link between them, each on a worker of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import structlog
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkflowRunner

from toolcrib.activities.pool_calls import PoolCalls
from toolcrib.activities.pool_link import PoolLinks
from toolcrib.activities.pools import ensure_pool, find_pools
from toolcrib.scheduling.errors import UnknownStrategy
from toolcrib.scheduling.names import DEFAULT_POOL, LINK_QUEUE, POOLS_QUEUE, TASKS_QUEUE
from toolcrib.scheduling.strategies import STRATEGIES
from toolcrib.worker.update_order import UpdatesLast
from toolcrib.workflows.device_pool import DevicePool
from toolcrib.workflows.external_task import ExternalTask
from toolcrib.workflows.host import Host
from toolcrib.workflows.messages import CountedArguments
from toolcrib.workflows.scheduled_task import ScheduledTask

POLLS: Final = 20
"""A queue with fewer polls than tasks at a time has the server write the others down: slow on a single database."""

LOOK_EVERY: Final = 30.0
"""Seconds between two looks whether there is a pool `default`."""

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def scheduler_role(client: Client) -> AsyncIterator[None]:
    """Serve pools and tasks as long as the context is open; there is a pool `default` from then on.

    Raises:
        UnknownStrategy: a pool is configured with a strategy that this process does not have.
    """
    await _check_strategies(client)
    calls = PoolCalls(client, PoolLinks(client))
    async with (
        Worker(
            client,
            task_queue=POOLS_QUEUE,
            workflows=[DevicePool],
            activities=calls.local,
            workflow_runner=workflow_runner(),
            interceptors=[CountedArguments()],
        ),
        Worker(
            client,
            task_queue=TASKS_QUEUE,
            workflows=[ScheduledTask, ExternalTask, Host],
            activities=calls.local,
            workflow_runner=workflow_runner(),
            interceptors=[CountedArguments()],
            max_concurrent_workflow_task_polls=POLLS,
        ),
        Worker(client, task_queue=LINK_QUEUE, activities=calls.patient),
    ):
        await ensure_pool(client, DEFAULT_POOL)
        keeping = asyncio.create_task(_keep_default_pool(client))
        _log.info("scheduler ready", strategies=STRATEGIES.names())
        try:
            yield
        finally:
            keeping.cancel()


async def _keep_default_pool(client: Client) -> None:
    """Create pool `default` again when it was ended."""
    while True:
        await asyncio.sleep(LOOK_EVERY)
        with suppress(RPCError):
            if await ensure_pool(client, DEFAULT_POOL):
                _log.warning("the pool was ended; created it again", pool=DEFAULT_POOL)


def workflow_runner() -> WorkflowRunner:
    """Return what runs workflows: not the SDK's sandbox, see docs/decisions/0008-no-sandbox.md."""
    return UpdatesLast(UnsandboxedWorkflowRunner())


async def _check_strategies(client: Client) -> None:
    async for pool in find_pools(client):
        if pool.strategy not in STRATEGIES:
            raise UnknownStrategy(
                f"pool {pool.name!r} is configured with the strategy {pool.strategy!r}, which is not registered here; "
                f"known: {', '.join(STRATEGIES.names())}",
                hint="Load its module: toolcrib worker --role scheduler --plugin MODULE",
            )

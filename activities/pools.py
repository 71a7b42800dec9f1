"""Creating pools, and finding those that exist."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes, WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.names import DEVICE_POOL, POOLS_QUEUE, SCHEDULED_TASK, checked_name, pool_workflow_id
from toolcrib.workflows.contract import HOST_KEYS, MAX_HISTORY_EVENTS, SETTINGS

_ENDED = "'Terminated', 'Canceled', 'Failed', 'Completed', 'TimedOut'"
_POOL = SearchAttributeKey.for_keyword("ToolcribPool")


@dataclass(frozen=True, kw_only=True)
class FoundPool:
    """A pool as Temporal lists it."""

    name: str
    strategy: str


async def create_pool(client: Client, name: str, config: PoolConfig) -> None:
    """Create a pool; it then runs for ever.

    Raises:
        InvalidRequest: there is one of that name already, or the name is malformed.
    """
    try:
        before = await _before(client, checked_name(name, "pool"))
        await _start(client, name, config, WorkflowIDConflictPolicy.FAIL, before)
    except WorkflowAlreadyStartedError:
        raise InvalidRequest(
            f"pool: {name!r} exists already", hint=f"Change it: toolcrib pool configure {name} ..."
        ) from None


async def ensure_pool(client: Client, name: str, config: PoolConfig | None = None) -> bool:
    """Create a pool unless there is one of that name, which stays as it is; return whether it was created.

    Without a `config` it gets the settings of an earlier pool of that name that was ended, or else the default ones.
    """
    before = await _before(client, checked_name(name, "pool"))
    if before.runs:
        return False
    await _start(client, name, config or before.config, WorkflowIDConflictPolicy.USE_EXISTING, before)
    return True


async def find_pools(client: Client) -> AsyncIterator[FoundPool]:
    """Yield the pools of the namespace; one created within the last second may still be missing."""
    query = f"WorkflowType = '{DEVICE_POOL}' AND ExecutionStatus = 'Running'"
    async for found in client.list_workflows(query):
        strategy = await found.memo_value("strategy", default="", type_hint=str)
        yield FoundPool(name=found.id.removeprefix(pool_workflow_id("")), strategy=strategy)


async def ended_pools(client: Client) -> list[str]:
    """Return the names of the pools that were ended and not created again, as far back as the namespace keeps them."""
    query = f"WorkflowType = '{DEVICE_POOL}' AND ExecutionStatus IN ({_ENDED})"
    ended = {found.id.removeprefix(pool_workflow_id("")): None async for found in client.list_workflows(query)}
    running = {found.name: None async for found in find_pools(client)} if ended else {}
    return sorted(name for name in ended if name not in running)


@dataclass(frozen=True, kw_only=True)
class _Before:
    """What there was of a pool before it is created."""

    runs: bool = False
    config: PoolConfig = field(default_factory=PoolConfig)
    host_keys: dict[str, str] | None = None
    """The public keys of its hosts; None: there never was one."""


async def _before(client: Client, name: str) -> _Before:
    """Return what there was of a pool.

    There was one if its workflow is there and closed, or if tasks still run in its name: then it was deleted, and its
    hosts have to be enrolled again.
    """
    try:
        found = await client.get_workflow_handle(pool_workflow_id(name)).describe()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        tasks = f"WorkflowType = '{SCHEDULED_TASK}' AND ToolcribPool = '{name}' AND ExecutionStatus = 'Running'"
        return _Before(host_keys={} if (await client.count_workflows(tasks)).count else None)
    settings: dict[str, Any] = await found.memo_value(SETTINGS, default={}, type_hint=dict[str, Any])
    host_keys: dict[str, str] = await found.memo_value(HOST_KEYS, default={}, type_hint=dict[str, str])
    return _Before(
        runs=found.status is WorkflowExecutionStatus.RUNNING,
        config=PoolConfig().changed(settings),
        host_keys=host_keys,
    )


async def _start(
    client: Client, name: str, config: PoolConfig, on_conflict: WorkflowIDConflictPolicy, before: _Before
) -> None:
    await client.start_workflow(
        DEVICE_POOL,
        args=[config.model_dump(), None, MAX_HISTORY_EVENTS, before.host_keys],
        id=pool_workflow_id(name),
        task_queue=POOLS_QUEUE,
        id_conflict_policy=on_conflict,
        memo={"strategy": config.strategy, SETTINGS: config.model_dump(), HOST_KEYS: before.host_keys or {}},
        search_attributes=TypedSearchAttributes([SearchAttributePair(_POOL, name)]),
        static_summary=f"Pool {name}",
    )

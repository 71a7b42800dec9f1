"""Creating pools, and finding those that exist."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes, WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.names import DEVICE_POOL, POOLS_QUEUE, SCHEDULED_TASK, checked_name, pool_workflow_id
from toolcrib.workflows.contract import HOST_KEYS, MAX_HISTORY_EVENTS

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
        await _start(client, checked_name(name, "pool"), config, WorkflowIDConflictPolicy.FAIL)
    except WorkflowAlreadyStartedError:
        raise InvalidRequest(
            f"pool: {name!r} exists already", hint=f"Change it: toolcrib pool configure {name} ..."
        ) from None


async def ensure_pool(client: Client, name: str, config: PoolConfig) -> None:
    """Create a pool unless there is one of that name; that one stays as it is."""
    await _start(client, checked_name(name, "pool"), config, WorkflowIDConflictPolicy.USE_EXISTING)


async def find_pools(client: Client) -> AsyncIterator[FoundPool]:
    """Yield the pools of the namespace; one created within the last second may still be missing."""
    query = f"WorkflowType = '{DEVICE_POOL}' AND ExecutionStatus = 'Running'"
    async for found in client.list_workflows(query):
        strategy = await found.memo_value("strategy", default="", type_hint=str)
        yield FoundPool(name=found.id.removeprefix(pool_workflow_id("")), strategy=strategy)


async def _keys_of_predecessor(client: Client, name: str) -> dict[str, str] | None:
    """Return the public keys of the hosts of an earlier pool of that name; None if there was none.

    There was one if its workflow is there and closed, or if tasks still run in its name: then it was deleted, and its
    hosts have to be enrolled again.
    """
    try:
        found = await client.get_workflow_handle(pool_workflow_id(name)).describe()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
    else:
        if found.status is WorkflowExecutionStatus.RUNNING:
            return None
        keys: dict[str, str] = await found.memo_value(HOST_KEYS, default={}, type_hint=dict[str, str])
        return keys
    tasks = f"WorkflowType = '{SCHEDULED_TASK}' AND ToolcribPool = '{name}' AND ExecutionStatus = 'Running'"
    return {} if (await client.count_workflows(tasks)).count else None


async def _start(client: Client, name: str, config: PoolConfig, on_conflict: WorkflowIDConflictPolicy) -> None:
    host_keys = await _keys_of_predecessor(client, name)
    await client.start_workflow(
        DEVICE_POOL,
        args=[config.model_dump(), None, MAX_HISTORY_EVENTS, host_keys],
        id=pool_workflow_id(name),
        task_queue=POOLS_QUEUE,
        id_conflict_policy=on_conflict,
        memo={"strategy": config.strategy, HOST_KEYS: host_keys or {}},
        search_attributes=TypedSearchAttributes([SearchAttributePair(_POOL, name)]),
        static_summary=f"Pool {name}",
    )

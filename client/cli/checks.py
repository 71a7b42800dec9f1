"""What `toolcrib doctor` looks at, one thing after another; what depends on a thing that failed is left out."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from toolcrib.client.cli.findings import Check, judge_pool, judge_strays
from toolcrib.client.cli.session import Session
from toolcrib.scheduling.errors import ToolcribError, UnknownPool
from toolcrib.scheduling.names import (
    DEFAULT_POOL,
    HOST,
    POOLS_QUEUE,
    SCHEDULED_TASK,
    host_workflow_id,
    pool_workflow_id,
)

if TYPE_CHECKING:
    from temporalio.client import Client

    from toolcrib.scheduling.views import PoolView
    from toolcrib.worker.target import Target

POOL_TIMEOUT: Final = 10.0
MOST_STRAYS: Final = 1_000
"""Of the tasks that name a pool that does not run, so many are counted."""
POLLED_WITHIN: Final = 120.0
"""A worker's poll lasts a minute at most, so one that was not seen for longer is gone."""


async def examine(session: Session) -> list[Check]:
    """Look at the connection, the set-up, the schedulers and the pools."""
    from toolcrib.worker.connection import open_client
    from toolcrib.worker.server_setup import check_namespace, check_search_attributes
    from toolcrib.worker.target import find_target

    try:
        target = find_target(session.address, session.namespace)
        client = await open_client(target)
    except ToolcribError as error:
        return [Check.refused("server", error)]
    checks = [Check("server", "ok", f"connected to {target}")]
    steps: tuple[tuple[str, str, Awaitable[None]], ...] = (
        ("namespace", f"{target.namespace!r} exists", check_namespace(client, target)),
        ("search attributes", "all exist", check_search_attributes(client, target)),
    )
    checks += [await _checked(*step) for step in steps]
    if all(check.verdict == "ok" for check in checks):
        checks.append(await _check_scheduler(client, target))
        checks += await _check_pools(session, client)
    return checks


async def _checked(name: str, good: str, step: Awaitable[None]) -> Check:
    from temporalio.service import RPCError

    from toolcrib.worker.rpc_faults import explain_rpc

    try:
        await step
    except ToolcribError as error:
        return Check.refused(name, error)
    except RPCError as error:
        return Check.refused(name, explain_rpc(error))
    return Check(name, "ok", good)


async def _check_scheduler(client: Client, target: Target) -> Check:
    from datetime import UTC, datetime

    from temporalio.api.enums.v1 import TaskQueueType
    from temporalio.api.taskqueue.v1 import TaskQueue
    from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest

    answer = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=target.namespace,
            task_queue=TaskQueue(name=POOLS_QUEUE),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
    )
    now = datetime.now(UTC).timestamp()
    alive = [poller for poller in answer.pollers if now - poller.last_access_time.seconds < POLLED_WITHIN]
    if not alive:
        hint = "Start one: toolcrib worker --role scheduler --config FILE, or all in one: toolcrib up"
        return Check("scheduler", "problem", "none is running", hint)
    return Check("scheduler", "ok", f"running: {', '.join(sorted({poller.identity for poller in alive}))}")


async def _check_pools(session: Session, client: Client) -> list[Check]:
    from toolcrib.activities.pools import find_pools

    names = sorted([found.name async for found in find_pools(client)])
    strays = await _check_strays(client, names)
    if not names and not strays:
        return [Check.refused("pool", UnknownPool.named(DEFAULT_POOL))]
    async with session.client() as crib:
        found = [await _check_pool(client, name, crib.pool(name).show()) for name in names]
    return [check for checks in found for check in checks] + strays


async def _check_strays(client: Client, running: list[str]) -> list[Check]:
    """Look for open tasks and hosts that name pools which do not run."""
    from temporalio.client import WorkflowExecutionStatus
    from temporalio.common import SearchAttributeKey
    from temporalio.service import RPCError

    others = "".join(f" AND ToolcribPool != '{name}'" for name in running)
    query = f"WorkflowType IN ('{SCHEDULED_TASK}', '{HOST}') AND ExecutionStatus = 'Running'{others}"
    tasks, hosts = Counter[str](), defaultdict[str, list[str]](list)
    async for found in client.list_workflows(query, limit=MOST_STRAYS):
        pool = found.typed_search_attributes.get(SearchAttributeKey.for_keyword("ToolcribPool"))
        if pool is None or pool in running:
            continue
        if found.workflow_type == HOST:
            hosts[pool].append(found.id.removeprefix(host_workflow_id("")))
        else:
            tasks[pool] += 1
    checks = []
    for pool in sorted({*tasks, *hosts}):
        try:
            status = (await client.get_workflow_handle(pool_workflow_id(pool)).describe()).status
        except RPCError:
            status = None
        if status is not WorkflowExecutionStatus.RUNNING:
            checks.append(judge_strays(pool, tasks=tasks[pool], hosts=hosts[pool], ended=status is not None))
    return checks


async def _check_pool(client: Client, name: str, showing: Awaitable[PoolView]) -> list[Check]:
    alive = f"WorkflowType = '{HOST}' AND ExecutionStatus = 'Running' AND ToolcribPool = '{name}'"
    try:
        async with asyncio.timeout(POOL_TIMEOUT):
            view = await showing
    except ToolcribError as error:
        return [Check.refused(f"pool {name}", error)]
    except TimeoutError:
        hint = "A scheduler must be running; if one is, read its log"
        return [Check(f"pool {name}", "problem", "does not answer", hint)]
    hosts = [found.id.removeprefix(host_workflow_id("")) async for found in client.list_workflows(alive)]
    return judge_pool(view, sorted(hosts))

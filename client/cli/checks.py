"""What `toolcrib doctor` looks at, one thing after another; what depends on a thing that failed is left out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from toolcrib.client.cli.session import Session
from toolcrib.scheduling.errors import ToolcribError, UnknownPool
from toolcrib.scheduling.names import DEFAULT_POOL, DEVICE_POOL, POOLS_QUEUE

if TYPE_CHECKING:
    from temporalio.client import Client

    from toolcrib.scheduling.views import PoolView
    from toolcrib.worker.target import Target

POOL_TIMEOUT: Final = 10.0
POLLED_WITHIN: Final = 120.0
"""A worker's poll lasts a minute at most, so one that was not seen for longer is gone."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: fine, worth a note, or a problem that keeps toolcrib from working."""

    name: str
    verdict: Literal["ok", "note", "problem"]
    text: str
    hint: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)


async def examine(session: Session) -> list[Check]:
    """Look at the connection, the set-up, the schedulers and the pools."""
    from toolcrib.worker.connection import open_client
    from toolcrib.worker.server_setup import check_namespace, check_search_attributes
    from toolcrib.worker.target import find_target

    try:
        target = find_target(session.address, session.namespace)
        client = await open_client(target)
    except ToolcribError as error:
        return [_problem("server", error)]
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
        return _problem(name, error)
    except RPCError as error:
        return _problem(name, explain_rpc(error))
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
    query = f"WorkflowType = '{DEVICE_POOL}' AND ExecutionStatus = 'Running'"
    prefix = "toolcrib-pool-"
    names = [found.id.removeprefix(prefix) async for found in client.list_workflows(query)]
    if not names:
        return [_problem("pool", UnknownPool.named(DEFAULT_POOL))]
    async with session.client() as crib:
        return [await _check_pool(name, crib.pool(name).show()) for name in sorted(names)]


async def _check_pool(name: str, showing: Awaitable[PoolView]) -> Check:
    try:
        async with asyncio.timeout(POOL_TIMEOUT):
            view = await showing
    except ToolcribError as error:
        return _problem(f"pool {name}", error)
    except TimeoutError:
        hint = "A scheduler must be running; if one is, read its log"
        return Check(f"pool {name}", "problem", "does not answer", hint)
    return judge_pool(view)


def judge_pool(view: PoolView) -> Check:
    """Return what there is to say of a pool that answers."""
    name = f"pool {view.name}"
    states = Counter(device.state for device in view.devices)
    counted = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "no devices"
    text = f"{view.strategy}, {counted}, {view.queued} queued"
    if view.problem:
        hint = f"Correct the strategy, or choose another: toolcrib pool configure {view.name} --strategy NAME"
        return Check(name, "problem", f"grants nothing: {view.problem}", hint)
    if not any(host.state == "online" for host in view.hosts):
        return Check(name, "note", f"{text}, no host online", "Start one: toolcrib worker --role host --config FILE")
    broken = [device.key for device in view.devices if device.state == "quarantined"]
    if broken:
        return Check(
            name, "note", f"{text}; quarantined: {', '.join(broken)}", f"See: toolcrib device list --pool {view.name}"
        )
    return Check(name, "ok", text)


def _problem(name: str, error: ToolcribError) -> Check:
    return Check(name, "problem", error.message, error.hint)

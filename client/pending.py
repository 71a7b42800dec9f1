"""Asks pools why tasks of theirs wait."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from temporalio.client import Client, WorkflowQueryFailedError, WorkflowQueryRejectedError
from temporalio.common import QueryRejectCondition
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.client.reading import QUERY_TIMEOUT
from toolcrib.scheduling.errors import UnknownPool
from toolcrib.scheduling.names import pool_workflow_id
from toolcrib.scheduling.views import PendingReason
from toolcrib.workflows.contract import POOL_REASONS

GATHERED_FOR: Final = 0.1
"""Seconds in which those who ask the same pool are gathered, to ask once."""


async def pending_reasons(client: Client, pool: str, task_ids: Sequence[str]) -> dict[str, PendingReason]:
    """Return why tasks wait in their pool, by id; those of which it does not know, or cannot say, are left out."""
    try:
        found: dict[str, PendingReason] = await client.get_workflow_handle(pool_workflow_id(pool)).query(
            POOL_REASONS,
            list(task_ids),
            result_type=dict[str, PendingReason],
            reject_condition=QueryRejectCondition.NOT_OPEN,
            rpc_timeout=QUERY_TIMEOUT,
        )
    except WorkflowQueryRejectedError:
        return dict.fromkeys(task_ids, _no_pool(UnknownPool.ended(pool)))
    except RPCError as error:
        gone = error.status is RPCStatusCode.NOT_FOUND
        return dict.fromkeys(task_ids, _no_pool(UnknownPool.named(pool))) if gone else {}
    except WorkflowQueryFailedError:
        return {}
    return found


class SharedQuestions:
    """Asks pools for many who want to know at the same time: one question a pool, ten times a second at most."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._askers: dict[str, dict[str, None]] = {}
        self._answers: dict[str, asyncio.Task[dict[str, PendingReason]]] = {}

    async def reason(self, pool: str, task_id: str) -> PendingReason | None:
        """Return why a task waits in its pool; None if the pool does not know it, or cannot say."""
        if pool not in self._askers:
            self._askers[pool] = {}
            self._answers[pool] = asyncio.create_task(self._ask(pool))
        self._askers[pool][task_id] = None
        return (await asyncio.shield(self._answers[pool])).get(task_id)

    async def _ask(self, pool: str) -> dict[str, PendingReason]:
        await asyncio.sleep(GATHERED_FOR)
        return await pending_reasons(self._client, pool, list(self._askers.pop(pool)))


def _no_pool(error: UnknownPool) -> PendingReason:
    return PendingReason(code="out_of_service", text=error.message)

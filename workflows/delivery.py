"""How a pool's tasks hear of their leases, and of a host's new worker: at once if it goes, and else by and by."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import HostRestarted
from toolcrib.scheduling.names import LINK_QUEUE
from toolcrib.scheduling.scheduler import TaskScheduler
from toolcrib.workflows.contract import DELIVER, DELIVER_PATIENTLY, TELL_HOLDERS
from toolcrib.workflows.pool_calls import LOCAL_FAILURE, ONCE

DELIVERY_TIME: Final = timedelta(seconds=2)
"""Bound of the local activity; inside, each signal has 200 ms."""
PATIENCE: Final = timedelta(seconds=40)
ONE_TRY: Final = timedelta(seconds=10)


class Delivery:
    """What is on its way from one pool to its tasks."""

    def __init__(self, scheduler: Callable[[], TaskScheduler]) -> None:
        self._scheduler = scheduler
        self._on_their_way: dict[str, Lease] = {}

    @property
    def fresh(self) -> list[Lease]:
        """The leases whose tasks nobody is telling of them yet."""
        return [lease for lease in self._scheduler().undelivered if self._on_their_way.get(lease.task_id) != lease]

    async def deliver(self, grants: list[Lease]) -> None:
        """Tell tasks of their leases; those that cannot be told at once are told by and by, beside the rest."""
        missed: list[str] = [lease.task_id for lease in grants]
        try:
            missed = await workflow.execute_local_activity(
                DELIVER, grants, result_type=list[str], start_to_close_timeout=DELIVERY_TIME, retry_policy=ONCE
            )
        except LOCAL_FAILURE:
            workflow.logger.info("grants could not be delivered at once; trying on")
        self._scheduler().delivered(lease for lease in grants if lease.task_id not in missed)
        if late := [lease for lease in grants if lease.task_id in missed]:
            self._scheduler().missed(late, workflow.time())
            self._on_their_way.update({lease.task_id: lease for lease in late})
            asyncio.create_task(self._deliver_patiently(late))  # noqa: RUF006 - the workflow's loop keeps it

    async def _deliver_patiently(self, grants: list[Lease]) -> None:
        try:
            await workflow.execute_activity(
                DELIVER_PATIENTLY,
                grants,
                task_queue=LINK_QUEUE,
                start_to_close_timeout=ONE_TRY,
                schedule_to_close_timeout=PATIENCE,
                retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=PATIENCE / 8),
            )
            self._scheduler().delivered(grants)
        except ActivityError:
            workflow.logger.info("grants were not delivered yet", extra={"tasks": [g.task_id for g in grants]})
        for lease in grants:
            if self._on_their_way.get(lease.task_id) == lease:
                del self._on_their_way[lease.task_id]


async def tell_holders(task_ids: list[str], news: HostRestarted) -> None:
    """Tell tasks that their host has a new worker; one that is not reached finds out when its lease lapses."""
    with suppress(ActivityError):
        await workflow.execute_activity(
            TELL_HOLDERS,
            args=[task_ids, news],
            task_queue=LINK_QUEUE,
            start_to_close_timeout=ONE_TRY,
            schedule_to_close_timeout=PATIENCE,
        )

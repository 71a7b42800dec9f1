"""The presence of a host whose older worker still takes from the queue that the newer one takes from."""

from __future__ import annotations

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import Worker

from support.lab import Lab, eventually, until_pool
from support.servers import connect
from toolcrib.activities.incarnation import Incarnation
from toolcrib.activities.presence import HostPresence
from toolcrib.scheduling.messages import Presence
from toolcrib.scheduling.names import HOST, TASKS_QUEUE, host_work_queue, host_workflow_id
from toolcrib.workflows.contract import ANOTHER_WORKER


def presence_of(number: int) -> HostPresence:
    """Return what shows the presence of a host's worker of that incarnation."""
    incarnation = Incarnation()
    incarnation.is_now(number)
    return HostPresence(incarnation)


def shown(incarnation: int) -> Presence:
    """Return what is to be shown of a host that does not beat soon."""
    return Presence(host_id="lab-1", pool="lab", incarnation=incarnation, ttl=60.0)


@pytest.mark.parametrize("meant", [1, 3])
async def test_a_worker_shows_no_presence_but_its_own(meant: int) -> None:
    """Neither that of an older worker nor that of a newer one: it would end with this one."""
    with pytest.raises(ApplicationError) as refused:
        await ActivityEnvironment().run(presence_of(2).presence, shown(meant))
    assert refused.value.type == ANOTHER_WORKER


async def test_a_presence_that_an_older_worker_took_is_shown_by_the_newer_one(lab: Lab) -> None:
    """The host does not go offline for that: it is tried again until the newer worker has it."""
    crib = await lab.pool()
    await lab.register_only()
    older, newer = presence_of(0), presence_of(1)
    queue = host_work_queue("lab-1")
    another = await connect(lab.client.service_client.config.target_host, lab.client.namespace)

    async def events() -> int:
        return (await handle.describe()).history_length

    async with Worker(lab.client, task_queue=queue, activities=[older.presence]):
        handle = await lab.client.start_workflow(HOST, shown(1), id=host_workflow_id("lab-1"), task_queue=TASKS_QUEUE)
        await eventually(events, lambda count: count >= 12)
        async with Worker(another, task_queue=queue, activities=[newer.presence]):
            await newer.until(shown=True, timeout=30)
            assert (await crib.pool().show()).hosts[0].state == "online"
            newer.leave()
            await until_pool(crib, lambda pool: pool.hosts[0].state == "offline")

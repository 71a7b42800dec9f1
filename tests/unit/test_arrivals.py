"""A worker that leaves waits for the leases that are on their way to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from support.rules import lease
from toolcrib.activities.arrivals import Arrivals

ONE, OTHER = lease(1, device_id="d1"), lease(1, device_id="d2")


@pytest.fixture
async def arrivals() -> AsyncIterator[Arrivals]:
    """What a host knows of its leases, within a time that no wait should take."""
    async with asyncio.timeout(10):
        yield Arrivals()


async def waiting(arrivals: Arrivals) -> asyncio.Task[None]:
    """Wait for two leases, which have not arrived yet."""
    task = asyncio.create_task(arrivals.until([ONE, OTHER]))
    await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_all_that_is_on_its_way_is_waited_for(arrivals: Arrivals) -> None:
    """In whatever order it arrives; what was there before counts."""
    for order in ([ONE, OTHER], [OTHER, ONE]):
        fresh = Arrivals()
        task = await waiting(fresh)
        fresh.note(order[0])
        await asyncio.sleep(0)
        assert not task.done()
        fresh.note(order[1])
        await task
        await fresh.until([ONE, OTHER])
    await arrivals.until([])


async def test_a_newer_lease_of_the_device_will_do(arrivals: Arrivals) -> None:
    """Then the awaited one is over; an older one does not count, however late it comes."""
    task = await waiting(arrivals)
    arrivals.note(lease(2, device_id="d1"))
    arrivals.note(lease(0, device_id="d2"))
    await asyncio.sleep(0)
    assert not task.done()
    arrivals.note(OTHER)
    arrivals.note(lease(0, device_id="d1"))
    await task

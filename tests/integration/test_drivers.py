"""Drivers of others, in a lab: what they do is their device's affair, and no lease's."""

from __future__ import annotations

from support.drivers import SLOW, WIPING, slow, wiping
from support.lab import Lab, eventually, until, until_pool
from toolcrib.client import TaskHandle
from toolcrib.scheduling.device import DeviceSpec

TTL = 3.0
"""A host that has not renewed a lease for two seconds of it has to end the work."""

PHONE = DeviceSpec(id="a", driver=WIPING, driver_type="phone", properties={"seconds": str(0.9 * TTL)})


async def test_a_lease_outlives_a_prepare_that_blocks_and_a_cancelled_one_is_cleaned_as_well(lab: Lab) -> None:
    """The lease is renewed all the while; and a device whose clean-up fails rests, also after a cancellation."""
    crib = await lab.pool(lease_ttl=TTL, max_attempts=1)
    wiping.broken = {"a"}
    async with lab.host(devices=[PHONE]):
        task = await crib.submit("echo ::toolcrib progress 0.5; sleep 60")
        view = await until(task, lambda view: view.progress == 0.5)
        assert view.status == "dispatched"
        await task.cancel()
        pool = await until_pool(crib, lambda pool: pool.leased == 0)
        assert pool.devices[0].state == "resting"
        assert "could not clean a: it is not wiped" in (pool.devices[0].reason or "")


async def test_a_clean_up_comes_to_its_end_though_its_task_is_cancelled_meanwhile(lab: Lab) -> None:
    """The work had ended, and the device is as good as after any other end."""
    crib = await lab.pool()
    slow.may_end.clear()
    async with lab.host(devices=[DeviceSpec(id="a", driver=SLOW, driver_type="phone")]):
        task = await crib.submit("true")
        await eventually(lambda: _is_cleaned_after(task), bool)
        await task.cancel()
        await until(task, lambda view: view.status == "cancelled")
        assert (await crib.pool().show()).leased == 1
        slow.may_end.set()
        pool = await until_pool(crib, lambda pool: pool.leased == 0)
    assert pool.devices[0].state == "idle"


async def _is_cleaned_after(task: TaskHandle) -> bool:
    return any(lease.startswith(task.id) for lease in slow.cleans)

"""What drivers have to do, as tests."""

from __future__ import annotations

import asyncio
import contextlib

from toolcrib.activities.context import LeaseContext
from toolcrib.activities.drivers import Driver
from toolcrib.activities.drivers.care import LIMITS
from toolcrib.activities.runners.aside import under_lease
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.worker.conformance.leases import HOST_ID, leased, run


class DriverConformance:
    """Inherit from it, and return the driver and a device that it can prepare here."""

    def driver(self) -> Driver:
        """Return a new driver."""
        raise NotImplementedError("define driver() in your test class: see its docstring")

    def device(self) -> DeviceSpec:
        """Return a device that is there."""
        raise NotImplementedError("define device() in your test class: see its docstring")

    def test_it_names_the_physical_device(self) -> None:
        """Always in the same way, with its kind before a slash: the name is that of the machine's lock."""
        driver, device = self.driver(), self.device()
        name = driver.physical_id(device, HOST_ID)
        assert name == driver.physical_id(device, HOST_ID) == self.driver().physical_id(device, HOST_ID)
        kind, _, rest = name.partition("/")
        assert kind, f"{name!r} begins with no kind"
        assert rest, f"{name!r} names nothing of that kind"
        assert name.isprintable(), f"{name!r} is not printable"

    def test_it_serves_one_lease_after_the_other(self) -> None:
        """What it prepared, it cleans, and then it can prepare it again; it adds variables, only texts."""
        run(self._serves())

    def test_it_cleans_what_was_not_prepared(self) -> None:
        """Also when it was cancelled while it prepared, and when it never began to."""
        run(self._cleans())

    async def _serves(self) -> None:
        driver, device = self.driver(), self.device()
        for _ in range(2):
            async with leased(device) as context:
                before = dict(context.environment)
                await _prepare(driver, device, context)
                after = context.environment
                lost = [name for name in before if after.get(name) != before[name]]
                assert not lost, f"variables of the lease are gone or changed: {lost}"
                odd = [name for name, value in after.items() if not isinstance(value, str) or "\0" in value]
                assert not odd, f"variables that no process can have: {odd}"
                await _clean(driver, device, context)

    async def _cleans(self) -> None:
        driver, device = self.driver(), self.device()
        async with leased(device) as context:
            await _clean(driver, device, context)
        async with leased(device) as context:
            preparing = asyncio.ensure_future(_prepare(driver, device, context))
            await asyncio.sleep(0)
            preparing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await preparing
            await _clean(driver, device, context)


async def _prepare(driver: Driver, device: DeviceSpec, context: LeaseContext) -> None:
    """Check and prepare, each in a loop of its own, as in a host."""
    check = getattr(driver, "check", None)
    if check is not None:
        async with asyncio.timeout(LIMITS.check):
            await under_lease("check", context, lambda inner: check(device, inner))
    async with asyncio.timeout(LIMITS.prepare):
        await under_lease("prepare", context, lambda inner: driver.prepare(device, inner))


async def _clean(driver: Driver, device: DeviceSpec, context: LeaseContext) -> None:
    """Clean as a host does: no process of the lease is left then."""
    await context.guard.end(context.lease.id)
    async with asyncio.timeout(LIMITS.clean):
        await under_lease("clean", context, lambda inner: driver.clean(device, inner))

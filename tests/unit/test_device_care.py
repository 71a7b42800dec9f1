"""What a host has drivers do: each step has its time, and none of others stops the loop that renews leases."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.guarded import running_lab, until
from support.leases import lease_context
from toolcrib.activities.context import LeaseContext, RunningWork
from toolcrib.activities.drivers.care import LIMITS, DeviceCare, DriverFailed, Limits
from toolcrib.activities.drivers.finding import DeviceSearch, FoundDevice
from toolcrib.activities.runners import aside
from toolcrib.activities.runners.aside import STOP_WITHIN, StillRunning
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.lease import HOST_CARE

SHORT = Limits(find=0.2, name=0.2, check=0.2, prepare=0.2, clean=0.2)


def block() -> None:
    """Do nothing, and let nothing else on this thread be done."""
    time.sleep(0.3)


class Plain:
    """A driver with the methods that are needed, and no others."""

    def physical_id(self, device: DeviceSpec, host_id: str) -> str:
        return f"plain/{device.id}"

    async def prepare(self, device: DeviceSpec, context: LeaseContext) -> None:
        context.environment["PREPARED_BY"] = threading.current_thread().name

    async def clean(self, device: DeviceSpec, context: LeaseContext) -> None: ...


class Blocking(Plain):
    """Blocks for a while in each step that its host waits for."""

    def physical_id(self, device: DeviceSpec, host_id: str) -> str:
        block()
        return f"blocking/{device.id}"

    async def check(self, device: DeviceSpec, context: LeaseContext) -> None:
        block()

    async def prepare(self, device: DeviceSpec, context: LeaseContext) -> None:
        block()

    async def clean(self, device: DeviceSpec, context: LeaseContext) -> None:
        block()


class Unfit(Plain):
    """A driver whose devices are not fit for work."""

    async def check(self, device: DeviceSpec, context: LeaseContext) -> None:
        raise RuntimeError(f"{device.properties.get('model', 'it')} is at 4 %")


class Endless(Plain):
    """Never comes to the end of a step, but stops when it is cancelled."""

    async def check(self, device: DeviceSpec, context: LeaseContext) -> None:
        if "check" in device.properties:
            await asyncio.Event().wait()

    async def prepare(self, device: DeviceSpec, context: LeaseContext) -> None:
        await asyncio.Event().wait()

    async def clean(self, device: DeviceSpec, context: LeaseContext) -> None:
        await asyncio.Event().wait()

    async def find(self, count: int | None, properties: Mapping[str, str]) -> list[FoundDevice]:
        await asyncio.Event().wait()
        return []


class Sleepy(Plain):
    """Cannot name a device in time."""

    def physical_id(self, device: DeviceSpec, host_id: str) -> str:
        time.sleep(1)
        return "late"


class Deaf(Plain):
    """Goes on though its time is over, until the test lets it end."""

    may_end = threading.Event()

    async def prepare(self, device: DeviceSpec, context: LeaseContext) -> None:
        self.may_end.wait()


class Unmoved(Plain):
    """Takes its cancellation for a sign to be done."""

    async def prepare(self, device: DeviceSpec, context: LeaseContext) -> None:
        context.environment["BEGUN"] = "yes"
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


class Rude(Plain):
    """Fails in ways that must not be taken for an order to its worker."""

    async def prepare(self, device: DeviceSpec, context: LeaseContext) -> None:
        raise SystemExit("cable pulled")

    async def clean(self, device: DeviceSpec, context: LeaseContext) -> None:
        raise asyncio.CancelledError


class Spawning(Plain):
    """Starts a process under the guard in one step, and looks at it in another."""

    work: RunningWork

    async def prepare(self, device: DeviceSpec, context: LeaseContext) -> None:
        nothing = os.open(os.devnull, os.O_RDWR)
        type(self).work = await context.guard.spawn(
            context.lease.id,
            ["sleep", "60"],
            env=context.environment,
            cwd=context.folder,
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
        )
        os.close(nothing)

    async def clean(self, device: DeviceSpec, context: LeaseContext) -> None:
        await self.work.kill(0)


class Finding(Plain):
    """Finds the devices that the properties of its entry name."""

    async def find(self, count: int | None, properties: Mapping[str, str]) -> list[FoundDevice]:
        if "fails" in properties:
            raise OSError("adb is not installed")
        return [FoundDevice(id=name, tags=("usb",)) for name in properties.get("connected", "").split()]


@pytest.fixture
async def context(tmp_path: Path) -> AsyncIterator[LeaseContext]:
    """The context of a lease, with a real guard."""
    async with running_lab() as lab:
        yield lease_context(lab.guard, tmp_path)


def care(driver: type, limits: Limits = LIMITS) -> DeviceCare:
    """Return the care of a driver of this module's, loaded as those of others are."""
    return DeviceCare(f"{__name__}:{driver.__name__}", limits)


def search(**fields: Any) -> DeviceSearch:
    """Return what an entry of a host file without an id asks for."""
    return DeviceSearch(**{"driver": "d", "driver_type": "phone", **fields})


async def test_a_driver_with_the_needed_methods_is_enough(context: LeaseContext) -> None:
    """Neither `check` nor `find` has to be there; what `prepare` adds to the environment arrives."""
    plain = care(Plain)
    assert await plain.physical_id(context.device, "h") == "plain/slot-1"
    await plain.prepare(context.device, context)
    assert context.environment["PREPARED_BY"] == f"lease {context.lease.id}"
    assert await plain.clean(context.device, context) is None
    with pytest.raises(InvalidRequest, match="finds no devices by itself"):
        await plain.find(search())


async def test_a_blocking_driver_stops_nothing_else(context: LeaseContext) -> None:
    """Whatever step it blocks in, the loop that renews leases goes on."""
    blocking, ticks = care(Blocking), 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    for step in (
        blocking.physical_id(context.device, "h"),
        blocking.prepare(context.device, context),
        blocking.clean(context.device, context),
    ):
        before = ticks
        await step
        assert ticks > before + 2
    ticking.cancel()


async def test_what_is_not_fit_is_not_prepared(context: LeaseContext) -> None:
    """A failing check is a failure of the device, with its reason, and `prepare` is not called."""
    with pytest.raises(DriverFailed, match=r"could not prepare slot-1: it is at 4 %"):
        await care(Unfit).prepare(context.device, context)
    assert "PREPARED_BY" not in context.environment


@pytest.mark.parametrize("properties", [{}, {"check": "endless"}])
async def test_each_step_has_its_time(context: LeaseContext, properties: dict[str, str]) -> None:
    """What does not end is stopped, and says so, whether it looks for devices, checks, prepares or cleans."""
    endless, device = care(Endless, SHORT), DeviceSpec(id="a", driver="d", driver_type="t", properties=properties)
    with pytest.raises(DriverFailed, match=r"could not prepare a: it took longer than 0\.2 s"):
        await endless.prepare(device, context)
    assert (await endless.clean(device, context) or "").endswith("could not clean a: it took longer than 0.2 s")
    assert all(user.done() for user in context.users)
    with pytest.raises(InvalidRequest, match=r"could not look for devices: it took longer than 0\.2 s"):
        await endless.find(search())
    with pytest.raises(DriverFailed, match=r"could not name a: it took longer than 0\.2 s"):
        await care(Sleepy, SHORT).physical_id(device, "h")


async def test_a_driver_that_does_not_stop_keeps_its_device(
    context: LeaseContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease goes on without it, and knows that it is still there."""
    monkeypatch.setattr(aside, "STOP_WITHIN", 1.1)
    with pytest.raises(StillRunning, match="did not stop"):
        await care(Deaf, SHORT).prepare(context.device, context)
    assert [user.done() for user in context.users] == [False]
    Deaf.may_end.set()
    await asyncio.wrap_future(context.users[0])


async def test_a_driver_cannot_swallow_the_end_of_its_lease(context: LeaseContext) -> None:
    """Else the work would begin after it was cancelled."""
    preparing = asyncio.create_task(care(Unmoved).prepare(context.device, context))
    await until(lambda: "BEGUN" in context.environment)
    preparing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await preparing


async def test_a_driver_cannot_end_its_worker(context: LeaseContext) -> None:
    """One that exits, or is cancelled from inside, has failed, and nothing more."""
    with pytest.raises(DriverFailed, match="cable pulled"):
        await care(Rude).prepare(context.device, context)
    assert "cancelled from inside" in (await care(Rude).clean(context.device, context) or "")


async def test_a_process_of_a_driver_lasts_as_long_as_its_lease(context: LeaseContext) -> None:
    """It is started from the driver's thread, outlives that, and can be ended from another one."""
    spawning = care(Spawning)
    await spawning.prepare(context.device, context)
    os.kill(Spawning.work.pid, 0)
    assert await spawning.clean(context.device, context) is None
    with pytest.raises(ProcessLookupError):
        os.kill(Spawning.work.pid, 0)


async def test_what_is_found_is_described_by_its_entry() -> None:
    """Tags of the entry are added to the driver's, and its properties and driver type hold for all."""
    found = await care(Finding).find(search(tags=("rack-7",), properties={"connected": "R58 R59"}, count=2))
    assert [(one.id, one.driver_type, one.tags) for one in found] == [
        ("R58", "phone", ("rack-7", "usb")),
        ("R59", "phone", ("rack-7", "usb")),
    ]
    assert found[0].properties == {"connected": "R58 R59"}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "has found 0 devices; the host file asks for some"),
        ({"count": 2, "properties": {"connected": "a"}}, "has found 1 devices; the host file asks for 2"),
        ({"properties": {"fails": "yes"}}, "could not look for devices: adb is not installed"),
        ({"properties": {"connected": "a/b"}}, "id: 'a/b' is not 1 to 64 of"),
    ],
)
async def test_what_is_not_found_stops_the_host(fields: dict[str, Any], said: str) -> None:
    """Too few, malformed ones, or a driver that cannot look: the error says so, and what to do."""
    with pytest.raises(InvalidRequest, match=said) as refused:
        await care(Finding).find(search(**fields))
    assert refused.value.hint


async def test_slots_are_there_because_they_are_wanted() -> None:
    """`{driver: local, count: 2}` is slot-1 and slot-2; without a count nobody knows how many."""
    local = DeviceCare("local")
    found = await local.find(search(driver="local", driver_type="local", count=2))
    assert [one.id for one in found] == ["slot-1", "slot-2"]
    with pytest.raises(InvalidRequest, match="driver local: there are as many as you like"):
        await local.find(search(driver="local"))


def test_the_steps_of_a_lease_fit_into_the_time_that_its_task_gives_its_host() -> None:
    """Even if each is used up, and its driver stops at the last moment."""
    steps = (LIMITS.name, LIMITS.check, LIMITS.prepare, LIMITS.clean)
    assert sum(steps) + 3 * STOP_WITHIN <= HOST_CARE

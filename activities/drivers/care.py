"""What drivers do for devices, each step within its time; those of others away from the loop that renews leases."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

import structlog

from toolcrib.activities.aside import Aside, here, is_being_cancelled
from toolcrib.activities.context import LeaseContext
from toolcrib.activities.drivers import SHIPPED, load_driver
from toolcrib.activities.drivers.finding import DeviceSearch
from toolcrib.activities.runners.aside import StillRunning, under_lease
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.errors import InvalidRequest, ToolcribError

Step = Callable[[LeaseContext], Coroutine[Any, Any, Any]]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Seconds that a driver gets for each step; all but `find` together are less than `HOST_CARE` of a task."""

    find: float = 60.0
    """To find its devices, for one entry of the host file."""
    name: float = 5.0
    """To name a physical device."""
    check: float = 30.0
    """To say whether a device is fit."""
    prepare: float = 120.0
    clean: float = 60.0


LIMITS: Final = Limits()


class DriverFailed(ToolcribError):
    """A driver could not get a device ready."""

    code = "driver_failed"


class DeviceCare:
    """One driver, loaded once for all devices of a host that are its."""

    def __init__(self, name: str, limits: Limits = LIMITS) -> None:
        """Load the driver of that name.

        Raises:
            InvalidRequest: there is none, or it cannot be loaded.
        """
        self._name = name
        self._driver = load_driver(name)
        self.limits = limits
        self._is_shipped = name in SHIPPED

    async def find(self, search: DeviceSearch) -> list[DeviceSpec]:
        """Return the devices that an entry of the host file stands for, in the driver's order.

        Raises:
            InvalidRequest: the driver cannot find devices, fails, takes too long, or finds too few or malformed ones.
        """
        find = getattr(self._driver, "find", None)
        if find is None:
            raise InvalidRequest(
                f"driver {self._name} finds no devices by itself", hint="Give each of its devices an entry with an id."
            )
        try:
            found = await _within(self.limits.find, _alone(lambda: find(search.count, dict(search.properties))))
            devices = [search.described(one) for one in found]
        except InvalidRequest as error:
            raise InvalidRequest(f"driver {self._name}: {error.message}", hint=error.hint) from error
        except (Exception, SystemExit) as error:
            raise InvalidRequest(
                f"driver {self._name} could not look for devices: {_words(error)}",
                hint="Correct what it says, or give its devices entries with an id.",
            ) from error
        if not devices or search.count not in (None, len(devices)):
            wanted = search.count or "some"
            raise InvalidRequest(
                f"driver {self._name} has found {len(devices)} devices; the host file asks for {wanted}",
                hint="Connect them, or correct the host file.",
            )
        return devices

    async def physical_id(self, device: DeviceSpec, host_id: str) -> str:
        """Return what names the physical device on this machine.

        Raises:
            DriverFailed: the driver fails or takes too long.
        """
        if self._is_shipped:
            return self._driver.physical_id(device, host_id)

        async def name() -> str:
            return self._driver.physical_id(device, host_id)

        try:
            return str(await _within(self.limits.name, _alone(name)))
        except (Exception, SystemExit) as error:
            raise DriverFailed(f"driver {self._name} could not name {device.id}: {_words(error)}") from error

    async def prepare(self, device: DeviceSpec, context: LeaseContext) -> None:
        """Make sure that the device is fit for work, and get it ready.

        Raises:
            DriverFailed: it is not, or the driver fails or takes too long.
            StillRunning: the driver was cancelled, or took too long, and does not stop.
        """
        check = getattr(self._driver, "check", None)
        try:
            if check is not None:
                await self._take(self.limits.check, context, lambda inner: check(device, inner))
            await self._take(self.limits.prepare, context, lambda inner: self._driver.prepare(device, inner))
        except StillRunning:
            raise
        except (Exception, SystemExit) as error:
            raise DriverFailed(f"driver {self._name} could not prepare {device.id}: {_words(error)}") from error

    async def clean(self, device: DeviceSpec, context: LeaseContext) -> str | None:
        """Have the device cleaned, and return why it is not clean."""
        try:
            await self._take(self.limits.clean, context, lambda inner: self._driver.clean(device, inner))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a driver raises, the work's verdict stands
            _log.exception("device not cleaned", lease=context.lease.id, device=device.id)
            return f"driver {self._name} could not clean {device.id}: {_words(error)}"
        return None

    async def _take(self, limit: float, context: LeaseContext, step: Step) -> None:
        """Take a step, and for no longer than `limit` seconds."""
        await _within(limit, step(context) if self._is_shipped else under_lease(f"driver {self._name}", context, step))


async def _within(limit: float, call: Awaitable[Any]) -> Any:
    """Return what `call` returns; one that is cancelled from inside has failed."""
    try:
        async with asyncio.timeout(limit) as bound:
            result = await call
    except TimeoutError:
        if not bound.expired():
            raise
    except asyncio.CancelledError:
        if is_being_cancelled():
            raise
        raise RuntimeError("it was cancelled from inside") from None
    if bound.expired():
        raise DriverFailed(f"it took longer than {limit:g} s")
    if is_being_cancelled():
        raise asyncio.CancelledError  # whatever became of it on the way
    return result


async def _alone(call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Return what `call` returns, in a thread of its own; cancelled, it is left to itself."""
    aside = Aside("driver", call)
    ended = here(aside.ended)
    try:
        await asyncio.wait({ended})
    except asyncio.CancelledError:
        aside.cancel()
        raise
    return ended.result()


def _words(error: BaseException) -> str:
    hint = f". {error.hint}" if isinstance(error, ToolcribError) and error.hint else ""
    return (str(error) or type(error).__name__) + hint

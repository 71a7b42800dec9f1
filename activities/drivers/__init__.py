"""Drivers get a device ready for a lease, and clean it afterwards. One file each; others come by entry point.

Those of others run aside, as runners do: see `toolcrib.activities.drivers.care`. docs/drivers.md says how to write one.
"""

from __future__ import annotations

from typing import Final, Protocol

from toolcrib.activities.context import LeaseContext
from toolcrib.activities.loading import load
from toolcrib.scheduling.device import DeviceSpec

GROUP: Final = "toolcrib.drivers"
SHIPPED: Final = {
    "browser": "toolcrib.activities.drivers.browser:BrowserDriver",
    "local": "toolcrib.activities.drivers.local:LocalDriver",
}


class Driver(Protocol):
    """Prepares devices of one kind; one instance serves all of a host's, several at a time.

    It may have two more methods. Each call of one, but for `physical_id`, has a time limit, see `Limits`.

    `async def check(self, device, context) -> None` is called before `prepare`, and raises if the device is not fit for
    work: an error that counts as one of `prepare` does.

    `async def find(self, count, properties) -> Sequence[FoundDevice]` is called when the host starts, for an entry of
    the host file that has no id. `count` is how many devices the entry asks for, or None; `properties` are the entry's.
    """

    def physical_id(self, device: DeviceSpec, host_id: str) -> str:
        """Return what names the physical device on this machine, its kind included, such as `adb/R58M123ABC`.

        Two leases of the same one never run at once, whichever hosts and drivers they came by.
        """

    async def prepare(self, device: DeviceSpec, context: LeaseContext) -> None:
        """Make the device ready for the work of a lease; may add to `context.environment`.

        Any error it raises counts as a failure of the device, not of the task.
        """

    async def clean(self, device: DeviceSpec, context: LeaseContext) -> None:
        """Leave the device fit for the next lease.

        Called once the work is gone, with all processes of the lease, also when `prepare` failed or was cancelled.
        """


def load_driver(name: str) -> Driver:
    """Return the driver of that name (shipped, entry point or `module:attribute`).

    Raises:
        InvalidRequest: there is none, or it cannot be loaded.
    """
    driver: Driver = load(name, GROUP, SHIPPED, "driver", ("physical_id", "prepare", "clean"))
    return driver

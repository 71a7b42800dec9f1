"""Devices that nobody has listed: a host file asks for them, and their driver finds them when the host starts."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolcrib.scheduling.constraints import checked_tags
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.names import checked_name


@dataclass(frozen=True, kw_only=True)
class FoundDevice:
    """A device that a driver has found."""

    id: str
    """What it is called on its host: the same one after a restart."""
    tags: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DeviceSearch:
    """An entry of a host file that stands for all devices, or so many, that its driver finds."""

    driver: str
    driver_type: str
    tags: tuple[str, ...] = ()
    """What all of them are tagged with, beside what the driver says."""
    properties: dict[str, str] = field(default_factory=dict)
    """What holds for all of them, whatever the driver says."""
    count: int | None = None
    """How many there must be; None: at least one."""

    def described(self, found: FoundDevice) -> DeviceSpec:
        """Return a device as it is registered.

        Raises:
            InvalidRequest: its id or a tag is malformed.
        """
        return DeviceSpec(
            id=checked_name(found.id, "id"),
            driver=self.driver,
            driver_type=self.driver_type,
            tags=checked_tags([*self.tags, *found.tags], "tags"),
            properties={**found.properties, **self.properties},
        )


def numbered(prefix: str, count: int | None) -> list[FoundDevice]:
    """Return devices of a kind of which there are as many as one asks for.

    Raises:
        InvalidRequest: nobody said how many.
    """
    if count is None:
        raise InvalidRequest("there are as many as you like", hint="Say how many in the host file, such as count: 2")
    return [FoundDevice(id=f"{prefix}-{number}") for number in range(1, count + 1)]

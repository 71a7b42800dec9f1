"""The state of a pool, and its serialised form, which is carried over by continue-as-new."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import TypeAdapter

from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.device import DeviceState, PooledDevice
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.references import Offered
from toolcrib.scheduling.waiting import Waiting

SCHEMA: Final = 4
"""2: devices fail, rest and are quarantined; tasks avoid devices. 3: hosts have keys; leases end slowly. 4: hosts say
which workflows they run. All load."""


@dataclass(kw_only=True)
class Held:
    """A lease that is out, and the task that holds it."""

    lease: Lease
    task: Waiting
    told: bool = False
    """Whether the task knows of its lease."""
    until: float | None = None
    """The task has let go of it, but its work may not have ended; by then it has, in unix seconds."""
    again: Waiting | None = None
    """How the task queues again when the work has ended."""

    @property
    def speaker(self) -> Waiting | None:
        """The task that may still speak; None if it is gone."""
        return self.task if self.until is None else self.again


@dataclass(kw_only=True)
class PooledHost:
    """A host of the pool. Times are unix seconds."""

    host_id: str
    instance: str
    """The worker process that spoke last."""
    incarnation: int
    """Counts the host's worker processes."""
    state: Literal["online", "offline", "draining"]
    last_seen: float | None
    """None: it was enrolled, and has not registered yet."""
    device_ids: list[str]
    """Its devices, in the order of its file."""
    in_service: bool = True
    public_key: str | None = None
    """None: it is not enrolled, or no longer."""
    serial: int = 0
    """Of its last registration."""
    presence: int = 0
    """The serial of the registration under which its worker shows that it lives."""
    reason: str | None = None
    """Why it is not online."""
    driver_types: tuple[str, ...] = ()
    """Those of its devices."""
    workflows: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The references that it runs, by driver type; on devices of other types, anything may be tried."""

    def offers_on(self, driver_type: str | None) -> list[Offered]:
        """Return what it runs on its devices of that kind, or on those of each kind."""
        kinds = self.driver_types if driver_type is None else [one for one in self.driver_types if one == driver_type]
        return [self.workflows.get(kind) for kind in kinds]


@dataclass(kw_only=True)
class PoolState:
    """Everything a pool knows. It holds no set: its order has to survive serialisation."""

    name: str
    config: PoolConfig
    schema: int = SCHEMA
    queue: list[Waiting] = field(default_factory=list)
    """In the order of service; while the pool runs, the scheduler's index of it is what counts."""
    held: dict[str, Held] = field(default_factory=dict)
    """By task id, in the order of their leases."""
    devices: dict[str, PooledDevice] = field(default_factory=dict)
    """By key, in registration order."""
    hosts: dict[str, PooledHost] = field(default_factory=dict)
    hearsay: dict[str, Lease] = field(default_factory=dict)
    """Leases that hosts say they work on and that no task has told of, by device key."""
    opens_at: float | None = None
    """A rebuilt pool grants nothing before: it may not know yet of all leases that are out."""
    survey_at: float | None = None
    """When a rebuilt pool looks for tasks of its that it does not know."""
    last_fencing: int = 0
    next_sequence: int = 0
    problem: str | None = None
    """Why the strategy grants nothing, if it raised."""

    @property
    def out(self) -> int:
        """How many leases are out."""
        return len(self.held) + len(self.hearsay)

    def in_service(self, device: PooledDevice) -> bool:
        """Return whether its operator lets tasks have `device`: it and its host are in service."""
        return device.in_service and self.hosts[device.host_id].in_service

    def outlook(self, device: PooledDevice) -> DeviceState | None:
        """Return what a task that wants `device` has to wait out; None if it is out of service.

        That is its state, but for a device that is leased or rests and will be of no use to others after that.
        """
        if not self.in_service(device):
            return None
        if device.quarantine is not None:
            return DeviceState.QUARANTINED
        online = self.hosts[device.host_id].state == "online"
        return device.state if online or device.state is DeviceState.QUARANTINED else DeviceState.OFFLINE

    def comes_free(self, device: PooledDevice) -> bool:
        """Return whether `device` is free for another task now, or will be by itself."""
        return self.outlook(device) not in (None, DeviceState.QUARANTINED, DeviceState.OFFLINE)


_ADAPTER: Final = TypeAdapter(PoolState)


def dump_state(state: PoolState) -> bytes:
    """Return `state` as one compressed payload."""
    return zlib.compress(_ADAPTER.dump_json(state))


def load_state(data: bytes) -> PoolState:
    """Return the state that `dump_state` wrote, of this version or an earlier one."""
    state = _ADAPTER.validate_json(zlib.decompress(data))
    state.schema = SCHEMA
    for device in state.devices.values():
        if (host := state.hosts.get(device.host_id)) is not None:
            device.workflows = host.workflows.get(device.driver_type)
    return state

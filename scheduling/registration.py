"""Hosts coming and going, and what that does to their devices."""

from __future__ import annotations

from typing import Final

from toolcrib.scheduling.device import DeviceSpec, DeviceState, PooledDevice
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.messages import HostSilent, HostSnapshot
from toolcrib.scheduling.names import device_key
from toolcrib.scheduling.pool import PooledHost, PoolState

MAX_DEVICES_WEIGHT: Final = 200_000
"""Bytes that the descriptions of a pool's devices may take, so that its state fits into one payload."""


def register_host(state: PoolState, snapshot: HostSnapshot, now: float) -> int:
    """Bring a host's devices into the pool, in the order of its file, and return its incarnation.

    A device that is leased stays so: the snapshot does not know of leases.

    Raises:
        InvalidRequest: the pool's devices would take too much room.
    """
    _check_room(state, snapshot)
    host = state.hosts.get(snapshot.host_id)
    incarnation = 1 if host is None else host.incarnation + (host.instance != snapshot.instance)
    state.hosts[snapshot.host_id] = PooledHost(
        host_id=snapshot.host_id,
        instance=snapshot.instance,
        incarnation=incarnation,
        state="online",
        last_seen=now,
        device_ids=[spec.id for spec in snapshot.devices],
        in_service=host.in_service if host else True,
    )
    for spec in snapshot.devices:
        _register_device(state, snapshot.host_id, spec, now)
    for device in [d for d in state.devices.values() if d.host_id == snapshot.host_id]:
        if device.state is not DeviceState.LEASED:
            device_freed(state, device.key, now)
    return incarnation


def silence_host(state: PoolState, message: HostSilent, now: float) -> None:
    """Take the devices of a silent host out of assignment; nothing happens if a newer worker has registered."""
    host = state.hosts.get(message.host_id)
    if host is None or host.incarnation != message.incarnation:
        return
    host.state = "offline"
    for device in state.devices.values():
        if device.host_id == message.host_id and device.state is DeviceState.IDLE:
            device.turn(DeviceState.OFFLINE, now, message.reason)


def device_freed(state: PoolState, key: str, now: float) -> None:
    """Put a device that nobody holds into the state that its host is in; drop it if its host no longer has it."""
    device = state.devices.get(key)
    if device is None:
        return
    host = state.hosts.get(device.host_id)
    if host is None or device.device_id not in host.device_ids:
        del state.devices[key]
    elif host.state == "offline":
        device.turn(DeviceState.OFFLINE, now, "its host is offline")
    else:
        device.turn(DeviceState.IDLE, now)


def _register_device(state: PoolState, host_id: str, spec: DeviceSpec, now: float) -> None:
    key = device_key(host_id, spec.id)
    if key in state.devices:
        state.devices[key].described_by(spec)
        return
    state.devices[key] = PooledDevice(
        host_id=host_id,
        device_id=spec.id,
        driver_type=spec.driver_type,
        tags=spec.tags,
        properties=dict(spec.properties),
        state=DeviceState.IDLE,
        since=now,
    )


def _check_room(state: PoolState, snapshot: HostSnapshot) -> None:
    others = [d for d in state.devices.values() if d.host_id != snapshot.host_id]
    weight = sum(_weight(d.device_id, d.tags, d.properties) for d in others)
    weight += sum(_weight(spec.id, spec.tags, spec.properties) for spec in snapshot.devices)
    if weight > MAX_DEVICES_WEIGHT:
        raise InvalidRequest(
            f"devices of host {snapshot.host_id!r}: pool {state.name!r} would hold {weight:,} bytes of device "
            f"descriptions, the limit is {MAX_DEVICES_WEIGHT:,}",
            hint="Give the host a pool of its own, or its devices fewer tags and properties.",
        )


def _weight(device_id: str, tags: tuple[str, ...], properties: dict[str, str]) -> int:
    texts = (device_id, *tags, *properties, *properties.values())
    return 40 + sum(len(text.encode()) for text in texts)

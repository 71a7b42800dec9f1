"""Hosts coming and going, and what that does to their devices."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from toolcrib.scheduling.constraints import checked_tags
from toolcrib.scheduling.device import DeviceSpec, DeviceState, PooledDevice
from toolcrib.scheduling.errors import BadSignature, HostSuperseded, InvalidRequest, NotEnrolled
from toolcrib.scheduling.messages import HostLeaves, HostSilent, HostSnapshot
from toolcrib.scheduling.names import checked_name, device_key
from toolcrib.scheduling.pool import PoolState
from toolcrib.scheduling.quoting import shown
from toolcrib.scheduling.references import checked_references
from toolcrib.scheduling.signatures import is_signed, registration_statement

MAX_DEVICES_WEIGHT: Final = 200_000
"""Bytes that a pool's devices and their leases may take, so that its state fits into one payload."""
_DEVICE_WEIGHT: Final = 120
"""A device's own, and that of the lease that may be out on it."""
_HOST_WEIGHT: Final = 160
"""Its names, its key and what tells its worker and machine."""


def register_host(state: PoolState, snapshot: HostSnapshot, now: float) -> int:
    """Bring a host's devices into the pool, in the order of its file, and return its incarnation.

    Of the state of its devices this says nothing, but that they are no longer offline: one that is leased, rests or is
    quarantined stays so.

    Raises:
        ToolcribError: as `check_registration`.
    """
    check_registration(state, snapshot)
    snapshot, host = _checked(snapshot), state.hosts[snapshot.host_id]
    if snapshot.serial == host.serial:
        return host.incarnation
    if snapshot.instance != host.instance:
        host.incarnation = max(host.incarnation + 1, snapshot.incarnation)
    host.instance, host.serial, host.last_seen = snapshot.instance, snapshot.serial, now
    host.state, host.reason, host.presence = "online", None, snapshot.presence or snapshot.serial
    host.device_ids = [spec.id for spec in snapshot.devices]
    host.driver_types = tuple(dict.fromkeys(spec.driver_type for spec in snapshot.devices))
    host.workflows = snapshot.workflows
    for spec in snapshot.devices:
        _register_device(state, snapshot.host_id, spec, now)
    for device in [d for d in state.devices.values() if d.host_id == snapshot.host_id]:
        device.workflows = host.workflows.get(device.driver_type)
        dropped = device.device_id not in host.device_ids
        in_use = device.state in (DeviceState.LEASED, DeviceState.RELEASING)
        if device.state is DeviceState.OFFLINE or (dropped and not in_use):
            device_freed(state, device.key, now)
    return host.incarnation


def check_registration(state: PoolState, snapshot: HostSnapshot) -> None:
    """Let a registration pass that is the host's own, new, and can be kept.

    Raises:
        NotEnrolled: the pool has no key of the host.
        BadSignature: it is not signed with that key.
        HostSuperseded: it was used before, or the host has registered again since it was made.
        InvalidRequest: the description is malformed, or the pool's devices would take too much room.
    """
    host = state.hosts.get(snapshot.host_id)
    if host is None or host.public_key is None:
        raise NotEnrolled.named(snapshot.host_id, state.name)
    if not is_signed(registration_statement(snapshot, state.name), snapshot.signature, host.public_key):
        raise BadSignature(
            f"host {snapshot.host_id}: the registration is not signed with the key that it is enrolled with",
            hint="If its key is a new one: toolcrib host revoke ID, and then: toolcrib host enroll ID",
        )
    repeated = snapshot.serial == host.serial and snapshot.instance == host.instance
    if snapshot.serial <= host.serial and not repeated:
        raise HostSuperseded(f"host {snapshot.host_id} has registered again since")
    _check_room(state, _checked(snapshot))


def silence_host(state: PoolState, message: HostSilent, now: float) -> bool:
    """Take the devices of a silent host out of assignment, unless it has registered since; say whether it was."""
    host = state.hosts.get(message.host_id)
    if host is None or host.incarnation != message.incarnation:
        return False
    if message.registration is not None and message.registration < host.presence:
        return False
    silence_host_now(state, message.host_id, message.reason, now)
    return True


def silence_host_now(state: PoolState, host_id: str, reason: str, now: float) -> None:
    """Take the devices of a host out of assignment, until it registers again."""
    state.hosts[host_id].state, state.hosts[host_id].reason = "offline", reason
    _go_offline(state, host_id, reason, now)


def leave_host(state: PoolState, message: HostLeaves, now: float) -> bool:
    """Let no new task have devices of a host whose worker stops, and return whether that one is still its newest."""
    host = state.hosts.get(message.host_id)
    if host is None or host.incarnation != message.incarnation:
        return False
    if host.state == "online":
        host.state, host.reason = "draining", "its host is draining"
        _go_offline(state, host.host_id, host.reason, now)
    return True


def device_freed(state: PoolState, key: str, now: float) -> None:
    """Put a device that nobody holds into the state that it and its host call for; drop it if its host has it no more.

    Work that its host still has comes before a quarantine, that before a rest, and that before the host being away.
    """
    device = state.devices.get(key)
    if device is None:
        return
    host = state.hosts.get(device.host_id)
    if host is None or device.device_id not in host.device_ids:
        del state.devices[key]
    elif (lease := state.hearsay.get(key)) is not None:
        device.turn(DeviceState.RELEASING, now, f"its host still works on lease {lease.id}")
    elif device.quarantine is not None:
        device.turn(DeviceState.QUARANTINED, now, device.quarantine)
    elif device.rests_until is not None and device.rests_until > now:
        device.turn(DeviceState.RESTING, now, device.fault)
    elif host.state != "online":
        device.turn(DeviceState.OFFLINE, now, host.reason or f"its host is {host.state}")
    else:
        device.turn(DeviceState.IDLE, now)


def _go_offline(state: PoolState, host_id: str, reason: str, now: float) -> None:
    for device in state.devices.values():
        if device.host_id == host_id and device.state in (DeviceState.IDLE, DeviceState.OFFLINE):
            device.turn(DeviceState.OFFLINE, now, reason)


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


def _checked(snapshot: HostSnapshot) -> HostSnapshot:
    """Let nothing into the state that cannot be matched or serialised, whoever sent it."""
    checked_name(snapshot.host_id, "host_id")
    checked_name(snapshot.instance, "instance")
    devices: dict[str, DeviceSpec] = {}
    for spec in snapshot.devices:
        if spec.id in devices:
            raise InvalidRequest(f"devices of host {snapshot.host_id!r}: {spec.id} is there twice")
        devices[checked_name(spec.id, "device_id")] = _checked_device(spec)
    workflows = {
        checked_name(driver_type, "workflows"): checked_references(found, f"workflows of host {snapshot.host_id}")
        for driver_type, found in snapshot.workflows.items()
    }
    return replace(snapshot, devices=tuple(devices.values()), workflows=workflows)


def _checked_device(spec: DeviceSpec) -> DeviceSpec:
    checked_name(spec.driver_type, f"driver_type of device {spec.id}")
    for text in (*spec.properties, *spec.properties.values()):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidRequest(f"properties of device {spec.id}: {shown(text)} is not valid Unicode") from None
    return replace(spec, tags=checked_tags(spec.tags, f"tags of device {spec.id}"))


def _check_room(state: PoolState, snapshot: HostSnapshot) -> None:
    others = [d for d in state.devices.values() if d.host_id != snapshot.host_id]
    weight = sum(_weight(d.device_id, d.driver_type, d.tags, d.properties) for d in others)
    weight += sum(_weight(spec.id, spec.driver_type, spec.tags, spec.properties) for spec in snapshot.devices)
    weight += sum(_HOST_WEIGHT + len(host_id) for host_id in dict.fromkeys((*state.hosts, snapshot.host_id)))
    said = {host.host_id: host.workflows for host in state.hosts.values()} | {snapshot.host_id: snapshot.workflows}
    weight += sum(len("".join(found)) for workflows in said.values() for found in workflows.values())
    if weight > MAX_DEVICES_WEIGHT:
        raise InvalidRequest(
            f"devices of host {snapshot.host_id!r}: pool {state.name!r} would hold {weight:,} bytes of devices "
            f"and leases, the limit is {MAX_DEVICES_WEIGHT:,}",
            hint="Give the host a pool of its own, or its devices fewer tags and properties.",
        )


def _weight(device_id: str, driver_type: str, tags: tuple[str, ...], properties: dict[str, str]) -> int:
    texts = (device_id, driver_type, *tags, *properties, *properties.values())
    return _DEVICE_WEIGHT + sum(len(text.encode()) for text in texts)

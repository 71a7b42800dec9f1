"""What a pool does about leases whose tasks or hosts no longer stand by them, and about those that it did not grant."""

from __future__ import annotations

from dataclasses import replace

from toolcrib.scheduling.device import DeviceState, PooledDevice
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import HostSnapshot
from toolcrib.scheduling.names import device_key
from toolcrib.scheduling.pool import Held, PooledHost, PoolState
from toolcrib.scheduling.registration import device_freed
from toolcrib.scheduling.waiting import Waiting


def let_go(state: PoolState, held: Held, reason: str, now: float, again: Waiting | None = None) -> None:
    """Keep a device from others until the work under a lease that its task let go of must have ended.

    Without its task the lease cannot be renewed, and a host ends what it cannot renew before the ttl is over. The task
    queues `again` only then.
    """
    held.again = again
    if held.until is None:
        held.until = now + held.lease.ttl
        if (device := state.devices.get(held.lease.device_key)) is not None:
            device.turn(DeviceState.RELEASING, now, reason)


def ended_by(state: PoolState, now: float) -> list[str]:
    """Return the tasks that let go of leases whose work must have ended by `now`."""
    return [task_id for task_id, held in state.held.items() if held.until is not None and held.until <= now]


def next_end(state: PoolState) -> float | None:
    """Return when the next such lease has ended, in unix seconds; None if none is ending."""
    return min((held.until for held in state.held.values() if held.until is not None), default=None)


def adopt(state: PoolState, lease: Lease, task: Waiting, now: float) -> bool:
    """Take note of a lease that this pool did not grant and that its task tells of; return whether it is believed.

    It is not if it is known to be over, or if another lease of the device is out.
    """
    device = state.devices.get(lease.device_key)
    if lease.task_id != task.task_id or (device is not None and lease.fencing <= device.over):
        return False
    if any(held.lease.device_key == lease.device_key for held in state.held.values()):
        return False
    state.hearsay.pop(lease.device_key, None)
    state.last_fencing = max(state.last_fencing, lease.fencing)
    state.held[task.task_id] = Held(lease=lease, task=task, told=True)
    if device is not None:
        device.turn(DeviceState.LEASED, now)
    return True


def lease_over(state: PoolState, lease: Lease, now: float) -> None:
    """Take note that a lease which this pool does not hold for anybody has ended."""
    device = state.devices.get(lease.device_key)
    if device is not None:
        device.over = max(device.over, lease.fencing)
    if (heard := state.hearsay.get(lease.device_key)) is not None and heard.fencing <= lease.fencing:
        del state.hearsay[lease.device_key]
        device_freed(state, lease.device_key, now)


def hear_host(state: PoolState, snapshot: HostSnapshot, now: float) -> list[str]:
    """Take in what a registered host works on and has served, and return the tasks whose leases have ended there.

    Only of leases that their tasks let go of the host knows better: what is granted and not at the host yet stays out.
    """
    host_id = snapshot.host_id
    for key, lease in list(state.hearsay.items()):
        if lease.host_id == host_id and key not in state.devices:
            del state.hearsay[key]
    out = {held.lease.device_key: held for held in state.held.values() if held.lease.host_id == host_id}
    ended = []
    for spec in snapshot.devices:
        device = state.devices[device_key(host_id, spec.id)]
        works = sorted(
            (lease for lease in snapshot.leases if lease.device_key == device.key), key=lambda lease: lease.fencing
        )
        _hear_device(state, device, works, snapshot.served.get(spec.id, 0))
        held = out.get(device.key)
        if held is None:
            if device.key in state.hearsay or device.state is DeviceState.RELEASING:
                device_freed(state, device.key, now)
        elif held.until is None:
            device.turn(DeviceState.LEASED, now, device.reason if device.state is DeviceState.LEASED else None)
        elif all(lease.id != held.lease.id for lease in works):
            ended.append(held.lease.task_id)
        else:
            device.turn(DeviceState.RELEASING, now, device.reason)
    return ended


def forget_works(state: PoolState, host_id: str, now: float) -> None:
    """Take note that nothing runs any more on a host that fell silent: it has ended what it could not renew."""
    for key in [key for key, lease in state.hearsay.items() if lease.host_id == host_id]:
        del state.hearsay[key]
        device_freed(state, key, now)


def has_ending_work(state: PoolState, host_id: str) -> bool:
    """Return whether work on a host has to end that no task answers for: then the host is to say when it has."""
    ending = any(held.until is not None and held.lease.host_id == host_id for held in state.held.values())
    return ending or any(lease.host_id == host_id for lease in state.hearsay.values())


def rebuilt(before: PoolState, now: float) -> PoolState:
    """Return the state of a pool that others of its name came before, of which it knows what people ordered.

    That is its settings, the keys of its hosts, and which of them and of their devices are out of service. Tasks and
    hosts know of leases that it does not, so it asks for them, and grants nothing until those that were granted before,
    and that no host has begun to work on, have run out.
    """
    kept = {
        key: replace(device, state=DeviceState.OFFLINE, since=now, rests_until=None)
        for key, device in before.devices.items()
        if device.quarantine is not None or not device.in_service
    }
    hosts = {
        host.host_id: PooledHost(
            host_id=host.host_id,
            instance="",
            incarnation=0,
            state="offline",
            last_seen=None,
            device_ids=[device.device_id for device in kept.values() if device.host_id == host.host_id],
            in_service=host.in_service,
            public_key=host.public_key,
            serial=host.serial,
        )
        for host in before.hosts.values()
    }
    state = PoolState(
        name=before.name,
        config=before.config,
        devices=kept,
        hosts=hosts,
        opens_at=now + before.config.claim_timeout + before.config.lease_ttl,
        survey_at=now,
        last_fencing=before.last_fencing,
    )
    for key in kept:
        device_freed(state, key, now)
    return state


def is_open(state: PoolState, now: float) -> bool:
    """Return whether the pool may grant leases: one that was rebuilt may not at first."""
    if state.opens_at is not None and now >= state.opens_at:
        state.opens_at = None
    return state.opens_at is None


def _hear_device(state: PoolState, device: PooledDevice, works: list[Lease], served: int) -> None:
    """Take note of the oldest lease that a host works on: the one that has the device."""
    before = device.over
    state.last_fencing = max(state.last_fencing, served)
    device.over = max(before, works[0].fencing - 1 if works else served)
    known = [held.lease.id for held in state.held.values()]
    if works and works[0].fencing > before and works[0].id not in known:
        state.hearsay[device.key] = works[0]
    else:
        state.hearsay.pop(device.key, None)

"""What a pool shows of itself."""

from __future__ import annotations

from typing import Final

from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.device import DeviceState, PooledDevice
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.markdown import as_is
from toolcrib.scheduling.matching import shunned
from toolcrib.scheduling.pool import PooledHost, PoolState
from toolcrib.scheduling.reasons import pending_reason
from toolcrib.scheduling.scheduler import TaskScheduler
from toolcrib.scheduling.views import DeviceView, HostView, PendingReason, PoolView, QueuedView, moment

MAX_QUEUE_SHOWN: Final = 200
MAX_DEVICES_IN_DETAILS: Final = 60


def pool_view(scheduler: TaskScheduler) -> PoolView:
    """Return the pool as people and programs see it."""
    state = scheduler.state
    return PoolView.model_validate(
        {
            "name": state.name,
            **state.config.model_dump(),
            "queued": len(state.queue),
            "leased": state.out,
            "devices": device_views(state),
            "problem": state.problem,
            "opens_at": moment(state.opens_at),
            "hosts": host_views(state),
            "queue": _queue_views(scheduler, state),
        }
    )


def device_views(state: PoolState) -> list[DeviceView]:
    """Return the devices in registration order, each with the lease it is under."""
    leases = state.hearsay | {held.lease.device_key: held.lease for held in state.held.values()}
    return [
        _device_view(device, leases.get(device.key), in_service=state.in_service(device))
        for device in state.devices.values()
    ]


def host_views(state: PoolState) -> list[HostView]:
    """Return the hosts in the order in which they came."""
    busy = {held.lease.host_id: None for held in state.held.values()}
    return [
        HostView(
            id=host.host_id,
            state="draining" if host.state == "online" and not host.in_service and host.host_id in busy else host.state,
            in_service=host.in_service,
            incarnation=host.incarnation,
            last_seen=moment(host.last_seen),
            public_key=host.public_key,
            workflows=_said(host),
        )
        for host in state.hosts.values()
    ]


def _said(host: PooledHost) -> list[str] | None:
    """Return what a host says that it runs, on whichever of its devices."""
    said = [offered for offered in host.offers_on(None) if offered is not None]
    return list({reference: None for offered in said for reference in offered}) if said else None


def pool_details(scheduler: TaskScheduler) -> str:
    """Return the pool in a few lines of Markdown, for the Temporal Web UI."""
    devices, held, cap = scheduler.devices, scheduler.held, scheduler.config.max_concurrent
    shown = devices[:MAX_DEVICES_IN_DETAILS]
    width = max((len(device.key) for device in shown), default=0)
    holders = {lease.device_key: lease.task_id for lease in held}
    lines = [scheduler.problem] if scheduler.problem else []
    lines += [f"queued {len(scheduler.queue)}   leased {len(held)} of {'all devices' if cap is None else cap}", ""]
    for device in shown:
        why = _why(device, in_service=scheduler.in_service(device))
        note = holders.get(device.key) or why or ("" if device.in_service else "out of service")
        lines.append(f"{device.key:<{width}} {device.state:<11} {note}".rstrip())
    if len(devices) > len(shown):
        lines.append(f"and {len(devices) - len(shown)} more")
    return f"**Pool {scheduler.name}**\n{as_is(lines)}"


def reasons_for(scheduler: TaskScheduler, task_ids: list[str]) -> dict[str, PendingReason]:
    """Return why each of these tasks waits; one that does not wait is left out."""
    state = scheduler.state
    return {
        task_id: _reason(scheduler, state, task.constraints, task.avoids, task.not_before)
        for task_id in task_ids
        if (task := scheduler.queue.get(task_id))
    }


def _reason(
    scheduler: TaskScheduler, state: PoolState, demand: Constraints, avoids: tuple[str, ...], not_before: float
) -> PendingReason:
    if state.opens_at is not None:
        text = f"the pool was rebuilt, and gives out devices from {moment(state.opens_at):%Y-%m-%dT%H:%M:%SZ} on"
        return PendingReason(code="backoff", text=text)
    if not_before > 0:
        text = f"its last attempt came to nothing; it is tried again from {moment(not_before):%Y-%m-%dT%H:%M:%SZ} on"
        return PendingReason(code="backoff", text=text)
    keys = shunned(demand, avoids, scheduler.coming())
    devices = [device for device in state.devices.values() if device.key not in keys]
    reason = pending_reason(demand, devices, state.outlook, below_cap=scheduler.below_cap)
    if not keys:
        return reason
    return PendingReason(code=reason.code, text=f"{reason.text}; it avoids {', '.join(keys)}, where its lease lapsed")


def _why(device: PooledDevice, *, in_service: bool) -> str | None:
    """Return why a device is in its state, and if it rests until when; or else why it is out of service."""
    if device.state is DeviceState.RESTING and device.rests_until is not None:
        return f"{device.reason}; rests until {moment(device.rests_until):%Y-%m-%dT%H:%M:%SZ}"
    by_host = device.in_service and not in_service
    return device.reason or ("its host is out of service" if by_host else None)


def _device_view(device: PooledDevice, lease: Lease | None, *, in_service: bool) -> DeviceView:
    return DeviceView(
        key=device.key,
        id=device.device_id,
        host_id=device.host_id,
        driver_type=device.driver_type,
        tags=list(device.tags),
        properties=device.properties,
        state=device.state.value,
        in_service=in_service,
        reason=_why(device, in_service=in_service),
        task_id=lease.task_id if lease else None,
        lease_id=lease.id if lease else None,
        fencing=lease.fencing if lease else None,
        since=moment(device.since),
    )


def _queue_views(scheduler: TaskScheduler, state: PoolState) -> list[QueuedView]:
    reasons: dict[tuple[Constraints, tuple[str, ...], float], PendingReason] = {}
    views = []
    for position, task in enumerate(state.queue[:MAX_QUEUE_SHOWN], 1):
        asked = (task.constraints, task.avoids, task.not_before)
        if asked not in reasons:
            reasons[asked] = _reason(scheduler, state, *asked)
        views.append(
            QueuedView(
                id=task.task_id,
                position=position,
                priority=task.priority,
                submitted_at=moment(task.submitted_at),
                pending_reason=reasons[asked],
            )
        )
    return views

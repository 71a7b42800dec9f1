"""What a pool shows of itself."""

from __future__ import annotations

from typing import Final

from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.pool import PoolState
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
            "leased": len(state.held),
            "devices": device_views(state),
            "problem": state.problem,
            "hosts": _host_views(state),
            "queue": _queue_views(scheduler, state),
        }
    )


def device_views(state: PoolState) -> list[DeviceView]:
    """Return the devices in registration order, each with the lease it is under."""
    leases = {held.lease.device_key: held.lease for held in state.held.values()}
    views = []
    for device in state.devices.values():
        lease = leases.get(device.key)
        views.append(
            DeviceView(
                key=device.key,
                id=device.device_id,
                host_id=device.host_id,
                driver_type=device.driver_type,
                tags=list(device.tags),
                properties=device.properties,
                state=device.state.value,
                in_service=device.in_service,
                reason=device.reason,
                task_id=lease.task_id if lease else None,
                lease_id=lease.id if lease else None,
                fencing=lease.fencing if lease else None,
                since=moment(device.since),
            )
        )
    return views


def pool_details(scheduler: TaskScheduler) -> str:
    """Return the pool in a few lines of Markdown, for the Temporal Web UI."""
    devices, held = scheduler.devices, scheduler.held
    holders = {lease.device_key: lease.task_id for lease in held}
    cap = scheduler.config.max_concurrent
    lines = [f"queued {len(scheduler.queue)}   leased {len(held)} of {'all devices' if cap is None else cap}", ""]
    lines += [
        f"{device.key:<30} {device.state:<12} {holders.get(device.key, device.reason or '')}"
        for device in devices[:MAX_DEVICES_IN_DETAILS]
    ]
    if len(devices) > MAX_DEVICES_IN_DETAILS:
        lines.append(f"and {len(devices) - MAX_DEVICES_IN_DETAILS} more")
    problem = f"\n{scheduler.problem}" if scheduler.problem else ""
    return f"**Pool {scheduler.name}**{problem}\n```\n" + "\n".join(lines) + "\n```"


def reasons_for(scheduler: TaskScheduler, task_ids: list[str]) -> dict[str, PendingReason]:
    """Return why each of these tasks waits; one that does not wait is left out."""
    state = scheduler.state
    demands = {task_id: task.constraints for task_id in task_ids if (task := scheduler.queue.get(task_id))}
    return {task_id: _reason(scheduler, state, demand) for task_id, demand in demands.items()}


def _reason(scheduler: TaskScheduler, state: PoolState, demand: Constraints) -> PendingReason:
    return pending_reason(demand, list(state.devices.values()), below_cap=scheduler.below_cap)


def _host_views(state: PoolState) -> list[HostView]:
    return [
        HostView(
            id=host.host_id,
            state=host.state,
            in_service=host.in_service,
            incarnation=host.incarnation,
            last_seen=moment(host.last_seen),
        )
        for host in state.hosts.values()
    ]


def _queue_views(scheduler: TaskScheduler, state: PoolState) -> list[QueuedView]:
    reasons: dict[Constraints, PendingReason] = {}
    views = []
    for position, task in enumerate(state.queue[:MAX_QUEUE_SHOWN], 1):
        if task.constraints not in reasons:
            reasons[task.constraints] = _reason(scheduler, state, task.constraints)
        views.append(
            QueuedView(
                id=task.task_id,
                position=position,
                priority=task.priority,
                submitted_at=moment(task.submitted_at),
                pending_reason=reasons[task.constraints],
            )
        )
    return views

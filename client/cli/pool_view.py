"""How a pool is shown to people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from toolcrib.client.cli.format import instant, setting, since
from toolcrib.client.cli.output import say, say_block, say_table

if TYPE_CHECKING:
    from toolcrib.scheduling.views import DeviceView, HostView, PoolView, QueuedView

SHOWN_OF_KEY = 12
"""Characters of a public key that tell it from others."""


def say_pool(view: PoolView) -> None:
    """Write a pool's settings, devices, hosts and queue."""
    say_block(
        (
            ("pool", view.name),
            ("strategy", view.strategy),
            ("max concurrent", "none" if view.max_concurrent is None else str(view.max_concurrent)),
            ("max queue depth", str(view.max_queue_depth)),
            ("claim timeout", setting(view.claim_timeout)),
            ("lease ttl", setting(view.lease_ttl)),
            ("max attempts", str(view.max_attempts)),
            ("queued", str(view.queued)),
            ("leased", str(view.leased)),
            ("problem", view.problem),
            ("opens", instant(view.opens_at)),
        )
    )
    if view.devices:
        say("")
        say_devices(view.devices)
    if view.hosts:
        say("")
        say_hosts(view.hosts)
    if view.queue:
        say("")
        say_table(("QUEUED", "PRIORITY", "WAITED", "WHY"), map(_queue_row, view.queue))


def say_pools(views: Iterable[PoolView]) -> None:
    """Write pools, one a line."""
    say_table(("POOL", "STRATEGY", "HOSTS", "DEVICES", "LEASED", "QUEUED"), map(_pool_row, views))


def say_devices(views: Iterable[DeviceView]) -> None:
    """Write devices, one a line."""
    say_table(("DEVICE", "TYPE", "STATE", "SINCE", "TASK", "TAGS"), map(_device_row, views))


def say_hosts(views: Iterable[HostView]) -> None:
    """Write hosts, one a line."""
    say_table(("HOST", "STATE", "LAST SEEN", "KEY"), map(_host_row, views))


def _pool_row(view: PoolView) -> tuple[str, ...]:
    counts = (len(view.hosts), len(view.devices), view.leased, view.queued)
    return view.name, view.strategy, *map(str, counts)


def _device_row(view: DeviceView) -> tuple[str, ...]:
    state = view.state if view.in_service else f"{view.state}, out of service"
    reason = f" ({view.reason})" if view.reason else ""
    return view.key, view.driver_type, state + reason, since(view.since), view.task_id or "-", " ".join(view.tags)


def _host_row(view: HostView) -> tuple[str, ...]:
    return (
        view.id,
        view.state if view.in_service else f"{view.state}, out of service",
        since(view.last_seen) if view.last_seen else "-",
        (view.public_key or "-")[:SHOWN_OF_KEY],
    )


def _queue_row(view: QueuedView) -> tuple[str, ...]:
    return view.id, str(view.priority), since(view.submitted_at), view.pending_reason.text

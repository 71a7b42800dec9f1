"""The JSON of a pool, and how it looks in a few lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.rules import START, device, entry, pool, register, settlement
from toolcrib.scheduling.messages import HostSilent, SettleKind
from toolcrib.scheduling.pool_view import MAX_DEVICES_IN_DETAILS, MAX_QUEUE_SHOWN, pool_details, pool_view
from toolcrib.scheduling.scheduler import TaskScheduler
from toolcrib.scheduling.views import moment

POOL = (
    *("name", "strategy", "max_concurrent", "max_queue_depth", "claim_timeout", "lease_ttl", "max_attempts"),
    *("queued", "leased", "devices", "hosts", "queue", "problem", "opens_at"),
)
DEVICE = (
    *("key", "id", "host_id", "driver_type", "tags", "properties", "state", "in_service", "reason"),
    *("task_id", "lease_id", "fencing", "since"),
)
HOST = ("id", "state", "in_service", "incarnation", "last_seen", "public_key", "workflows")
QUEUED = ("id", "position", "priority", "submitted_at", "pending_reason")


def shown(view: Any) -> dict[str, Any]:
    """Return a view as a program reads it."""
    data: dict[str, Any] = json.loads(view.model_dump_json())
    return data


@pytest.fixture
def scheduler() -> TaskScheduler:
    """A pool in which something of everything is going on."""
    scheduler = pool(device("d1", "a"), device("d2"), max_concurrent=1)
    register(scheduler, "h2", [device("d1", driver_type="phone")], START)
    scheduler.silence(HostSilent(host_id="h2", incarnation=1, reason="no heartbeat"), START + 1)
    scheduler.admit([entry("t1", "a"), entry("t2", priority=1), entry("t3", driver_type="phone")], START + 2)
    return scheduler


def test_a_pool_shows_every_field(scheduler: TaskScheduler) -> None:
    """At every level, null if it has no value."""
    data = shown(pool_view(scheduler))
    assert sorted(data) == sorted(POOL)
    assert [sorted(each) for each in data["devices"]] == [sorted(DEVICE)] * 3
    assert [sorted(each) for each in data["hosts"]] == [sorted(HOST)] * 2
    assert [sorted(each) for each in data["queue"]] == [sorted(QUEUED)] * 2
    assert (data["queued"], data["leased"], data["max_concurrent"], data["problem"]) == (2, 1, 1, None)


def test_a_pool_shows_who_has_what_and_who_waits_why(scheduler: TaskScheduler) -> None:
    """Devices in registration order with their holders, hosts with their state, the queue in order of service."""
    view = pool_view(scheduler)
    held = scheduler.held[0]
    assert [(each.key, each.state, each.task_id, each.reason) for each in view.devices] == [
        ("h/d1", "leased", "t1", None),
        ("h/d2", "idle", None, None),
        ("h2/d1", "offline", None, "no heartbeat"),
    ]
    assert (view.devices[0].lease_id, view.devices[0].fencing) == (held.id, held.fencing)
    assert [(host.id, host.state, host.incarnation) for host in view.hosts] == [
        ("h", "online", 1),
        ("h2", "offline", 1),
    ]
    assert [(place.id, place.position, place.priority, place.pending_reason.code) for place in view.queue] == [
        ("t2", 1, 1, "cap"),
        ("t3", 2, 3, "offline"),
    ]


def test_a_long_queue_is_counted_and_its_head_is_shown() -> None:
    """The view has to fit into an answer."""
    scheduler = pool()
    scheduler.admit([entry(f"t{n}") for n in range(MAX_QUEUE_SHOWN + 5)], START)
    view = pool_view(scheduler)
    assert (view.queued, len(view.queue), view.queue[-1].position) == (MAX_QUEUE_SHOWN + 5, MAX_QUEUE_SHOWN, 200)


def test_a_pool_in_a_few_lines(scheduler: TaskScheduler) -> None:
    """What the Web UI shows: counts, then a device a line with its holder or reason; many devices are cut."""
    assert pool_details(scheduler) == (
        "**Pool default**\n```\n"
        "queued 2   leased 1 of 1\n\n"
        "h/d1  leased      t1\n"
        "h/d2  idle\n"
        "h2/d1 offline     no heartbeat\n"
        "```"
    )
    crowded = pool(*(device(f"d{n}") for n in range(MAX_DEVICES_IN_DETAILS + 7)))
    assert pool_details(crowded).endswith("\nand 7 more\n```")
    assert "leased 0 of all devices" in pool_details(crowded)


def test_a_released_device_shows_no_holder(scheduler: TaskScheduler) -> None:
    """Nothing of the lease stays behind."""
    scheduler.configure(scheduler.config.changed({"max_concurrent": None}), START)
    scheduler.settle([settlement(SettleKind.RELEASE, held) for held in scheduler.held], START + 5)
    first = pool_view(scheduler).devices[0]
    assert (first.state, first.task_id, first.lease_id, first.fencing) == ("idle", None, None, None)
    assert first.since == moment(START + 5)

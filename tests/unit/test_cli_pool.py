"""`toolcrib pool`, `strategies`, and what `doctor` makes of a pool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from support.fake_crib import CREATED, FakeCrib, pool_view

if TYPE_CHECKING:
    from support.cli import Run

pytest_plugins = ["support.cli"]

DEVICE = {
    "key": "lab/slot-1",
    "id": "slot-1",
    "host_id": "lab",
    "driver_type": "local",
    "tags": ["linux", "x86_64"],
    "state": "idle",
    "in_service": True,
    "since": CREATED,
}
HOST = {"id": "lab", "state": "online", "in_service": True, "incarnation": 1, "last_seen": CREATED}
WAITING = {
    "id": "task-1",
    "position": 1,
    "priority": 3,
    "submitted_at": CREATED,
    "pending_reason": {"code": "cap", "text": "3 of 3 leases are out"},
}
OPTIONS = (
    "--strategy priority_fifo --max-concurrent 5 --max-queue-depth 9 --claim-timeout 1m --lease-ttl 3s --max-attempts 2"
)


@pytest.mark.parametrize("verb", ["create", "configure"])
def test_settings_of_a_pool_are_passed_as_its_fields(cli: Run, crib: FakeCrib, verb: str) -> None:
    """Every option becomes the field of PoolConfig, durations in seconds."""
    ran = cli("pool", verb, "phones", *OPTIONS.split())
    assert (ran.code, ran.out) == (0, "")
    assert f"pool phones {verb}d" in ran.err
    assert crib.known_pools["phones"].calls == [
        (
            verb,
            {
                "strategy": "priority_fifo",
                "max_concurrent": 5,
                "max_queue_depth": 9,
                "claim_timeout": 60.0,
                "lease_ttl": 3.0,
                "max_attempts": 2,
            },
        )
    ]


def test_only_what_is_given_is_passed(cli: Run, crib: FakeCrib) -> None:
    """What is not given keeps its default or its value; `none` is a value."""
    cli("pool", "create", "phones")
    cli("pool", "configure", "phones", "--max-concurrent", "none")
    assert crib.known_pools["phones"].calls == [("create", {}), ("configure", {"max_concurrent": None})]


def test_under_json_a_changed_pool_is_shown(cli: Run) -> None:
    """With `-o json` the answer is the pool."""
    assert json.loads(cli("pool", "create", "phones", "-o", "json").out)["strategy"] == "fifo_match"


def test_show_has_settings_devices_hosts_and_queue(cli: Run, crib: FakeCrib) -> None:
    """A person sees all of a pool, of the default one if none is named."""
    out_of_service = {**DEVICE, "key": "lab/slot-2", "in_service": False, "reason": "cable", "task_id": None}
    crib.pool().view = pool_view(
        devices=[DEVICE, out_of_service], hosts=[HOST], queue=[WAITING], queued=1, max_concurrent=None
    )
    out = cli("pool", "show").out
    assert "max concurrent   none" in out
    assert "lease ttl        15s" in out
    assert "lab/slot-1  local  idle " in out
    assert "lab/slot-2  local  idle, out of service (cable)" in out
    assert "linux x86_64" in out
    assert "lab   online" in out
    assert "3 of 3 leases are out" in out


def test_show_under_json_is_the_pool(cli: Run, crib: FakeCrib) -> None:
    """With `-o json` it is one PoolView."""
    crib.pool().view = pool_view(devices=[DEVICE])
    assert json.loads(cli("pool", "show", "-o", "json").out)["devices"][0]["key"] == "lab/slot-1"


def test_assign_prints_how_many_were_granted(cli: Run) -> None:
    """The number alone, or an object under `-o json`."""
    assert cli("pool", "assign", "phones").out == "2\n"
    assert json.loads(cli("pool", "assign", "-o", "json").out) == {"granted": 2}


def test_strategies_are_listed(cli: Run) -> None:
    """One name a line, or an array."""
    assert cli("strategies").out == "fifo_match\npriority_fifo\n"
    assert json.loads(cli("strategies", "-o", "json").out) == ["fifo_match", "priority_fifo"]


def test_pools_are_listed(cli: Run, crib: FakeCrib) -> None:
    """One a line, or an array of what `pool show` has."""
    assert "no pools" in cli("pool", "list").err
    crib.pool().view = pool_view(devices=[DEVICE], hosts=[HOST], queued=7)
    assert cli("pool", "list").out.splitlines()[1].split() == ["default", "fifo_match", "1", "1", "0", "7"]
    assert [pool["queued"] for pool in json.loads(cli("pool", "list", "-o", "json").out)] == [7]


def test_pool_list_tells_of_pools_that_were_ended(cli: Run, crib: FakeCrib) -> None:
    """Beside those that run, and in place of the advice to create one; the data has those that run alone."""
    crib.ended = ["phones"]
    told = "pool 'phones' was ended; create it again: toolcrib pool create phones\n"
    assert (cli("pool", "list").out, cli("pool", "list").err) == ("", told)
    crib.pool("default")
    ran = cli("pool", "list")
    assert (len(ran.out.splitlines()), ran.err) == (2, told)
    ran = cli("pool", "list", "-o", "json")
    assert ([pool["name"] for pool in json.loads(ran.out)], ran.err) == (["default"], "")

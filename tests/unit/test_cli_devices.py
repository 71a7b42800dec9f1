"""`toolcrib device` and `toolcrib host`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from support.fake_crib import CREATED, FakeCrib, pool_view

if TYPE_CHECKING:
    from support.cli import Connections, Run

pytest_plugins = ["support.cli"]

DEVICE: dict[str, Any] = {
    "key": "lab/slot-1",
    "id": "slot-1",
    "host_id": "lab",
    "driver_type": "local",
    "tags": ["linux", "x86_64"],
    "properties": {"serial": "R58M"},
    "state": "idle",
    "in_service": True,
    "since": CREATED,
}
RESTING = {**DEVICE, "key": "lab/slot-2", "state": "resting", "reason": "failed once: it lapsed"}
HOST = {"id": "lab", "state": "online", "in_service": True, "incarnation": 1, "last_seen": CREATED}


@pytest.fixture
def crib() -> FakeCrib:
    """A pool with one host and two devices."""
    fake = FakeCrib()
    fake.pool().view = pool_view(devices=[DEVICE, RESTING], hosts=[HOST])
    return fake


def test_devices_are_listed_one_a_line(cli: Run) -> None:
    """With state, reason and tags; as an array of devices under `-o json`."""
    header, first, second = cli("device", "list").out.splitlines()
    assert header.split() == ["DEVICE", "TYPE", "STATE", "SINCE", "TASK", "TAGS"]
    assert first.startswith("lab/slot-1  local  idle ")
    assert "resting (failed once: it lapsed)" in second
    assert [one["state"] for one in json.loads(cli("device", "list", "-o", "json").out)] == ["idle", "resting"]


def test_one_device_is_shown_with_all_there_is(cli: Run) -> None:
    """A field a line, what the driver says of it among them; as one device under `-o json`."""
    out = cli("device", "show", "lab/slot-1").out
    for line in ("device      lab/slot-1", "tags        linux x86_64", "serial      R58M", "in service  yes"):
        assert line in out
    assert "reason      failed once: it lapsed" in cli("device", "show", "lab/slot-2").out
    assert json.loads(cli("device", "show", "lab/slot-1", "-o", "json").out)["properties"] == {"serial": "R58M"}


@pytest.mark.parametrize(
    ("words", "call", "said"),
    [
        (["drain"], ("drain_device", {"in_service": False}), "device lab/slot-1 is out of service"),
        (["resume"], ("resume_device", {}), "device lab/slot-1 is in service"),
        (
            ["quarantine", "--reason", "loose cable"],
            ("quarantine_device", {"state": "quarantined", "reason": "loose cable"}),
            "device lab/slot-1 is quarantined",
        ),
    ],
)
def test_orders_for_a_device_are_passed_and_confirmed(
    cli: Run, crib: FakeCrib, words: list[str], call: tuple[str, dict[str, Any]], said: str
) -> None:
    """On stderr for a person; the device as it is then under `-o json`."""
    verb, *options = words
    ran = cli("device", verb, "lab/slot-1", *options)
    assert (ran.code, ran.out, ran.err) == (0, "", said + "\n")
    assert crib.pool().calls == [(call[0], {"key": "lab/slot-1", **call[1]})]
    assert json.loads(cli("device", verb, "lab/slot-1", *options, "-o", "json").out)["key"] == "lab/slot-1"


def test_who_still_holds_the_device_is_told(cli: Run, crib: FakeCrib) -> None:
    """Draining interrupts nothing."""
    crib.pool().view = pool_view(devices=[{**DEVICE, "state": "leased", "task_id": "task-7"}])
    assert cli("device", "drain", "lab/slot-1").err.endswith("; task-7 may finish on it\n")


def test_a_device_may_stay_out_of_service_with_its_host(cli: Run, crib: FakeCrib) -> None:
    """To resume it is not enough then, and that is said."""
    crib.pool().view = pool_view(devices=[{**DEVICE, "in_service": False}])
    assert cli("device", "resume", "lab/slot-1").err == "device lab/slot-1 stays out of service with its host\n"


@pytest.mark.parametrize("words", [["show"], ["drain"], ["resume"], ["quarantine", "--reason", "gone"]])
def test_a_device_that_is_not_there_has_an_exit_code_of_its_own(cli: Run, words: list[str]) -> None:
    """Two lines, the second of which says where to look."""
    ran = cli("device", words[0], "lab/slot-9", *words[1:])
    assert (ran.code, ran.out) == (8, "")
    assert ran.err == (
        "error: pool 'default' has no device 'lab/slot-9'\nhint: See: toolcrib device list --pool default\n"
    )


def test_hosts_are_listed_one_a_line(cli: Run) -> None:
    """With state; as an array of hosts under `-o json`."""
    header, line = cli("host", "list").out.splitlines()
    assert header.split() == ["HOST", "STATE", "LAST", "SEEN", "KEY"]
    assert line.split()[:2] == ["lab", "online"]
    assert json.loads(cli("host", "list", "-o", "json").out)[0]["incarnation"] == 1


def test_orders_for_a_host_are_passed_and_confirmed(cli: Run, crib: FakeCrib) -> None:
    """With a word about what still runs on it; the host as it is then under `-o json`."""
    assert cli("host", "drain", "lab").err == "host lab is out of service; some work runs on\n"
    assert cli("host", "resume", "lab").err == "host lab is in service\n"
    assert json.loads(cli("host", "drain", "lab", "-o", "json").out)["state"] == "draining"
    assert [name for name, _ in crib.pool().calls] == ["drain_host", "resume_host", "drain_host"]


@pytest.mark.parametrize("words", [["device", "list"], ["device", "drain", "lab/slot-1"], ["host", "drain", "lab"]])
def test_the_pool_is_the_one_that_is_named(cli: Run, connections: Connections, words: list[str]) -> None:
    """Else the default one."""
    cli(*words)
    cli(*words, "--pool", "phones")
    assert [pool for _, _, pool in connections] == [None, "phones"]

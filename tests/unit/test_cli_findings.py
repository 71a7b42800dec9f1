"""What `toolcrib doctor` makes of pools."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from support.fake_crib import CREATED, pool_view
from toolcrib.client.cli.findings import Check, judge_pool, judge_strays

DEVICE = {
    "key": "lab/slot-1",
    "id": "slot-1",
    "host_id": "lab",
    "driver_type": "local",
    "tags": [],
    "state": "idle",
    "in_service": True,
    "since": CREATED,
}
HOST = {
    "id": "lab",
    "state": "online",
    "in_service": True,
    "incarnation": 1,
    "last_seen": CREATED,
    "public_key": "key",
}


def found(**fields: Any) -> list[Check]:
    """Return what there is to say of a pool with one device and one host, besides itself."""
    first, *rest = judge_pool(pool_view(**{"devices": [DEVICE], "hosts": [HOST], **fields}))
    assert first.name == "pool default"
    assert all(check.verdict == "note" and check.hint for check in rest)
    return rest


def test_a_pool_with_an_online_host_is_fine() -> None:
    """Devices are counted by state."""
    leased = {**DEVICE, "key": "lab/slot-2", "state": "leased"}
    (check,) = judge_pool(pool_view(devices=[DEVICE, leased], hosts=[HOST], queued=4))
    assert (check.verdict, check.text) == ("ok", "fifo_match, 1 idle, 1 leased, 4 queued")


def test_a_pool_without_a_host_is_noted_not_a_problem() -> None:
    """Tasks can be submitted before a host is there."""
    (check,) = judge_pool(pool_view())
    assert (check.verdict, check.text) == ("note", "fifo_match, no devices, 0 queued, no host online")
    assert "--role host" in (check.hint or "")


def test_tasks_without_a_host_are_a_problem() -> None:
    """They cannot run until somebody does something."""
    (check,) = judge_pool(pool_view(queued=1))
    assert (check.verdict, check.text) == ("problem", "fifo_match, no devices, 1 queued, no host online")


def test_a_host_that_runs_and_is_not_enrolled_is_a_problem() -> None:
    """As after a pool was deleted, and with it the keys of its hosts."""
    revoked = {**HOST, "id": "revoked", "state": "offline", "public_key": None}
    checks = judge_pool(pool_view(devices=[DEVICE], hosts=[HOST, revoked]), ["lab", "revoked", "unknown"])
    assert [(check.name, check.verdict) for check in checks[1:]] == [
        ("host unknown", "problem"),
        ("host revoked", "note"),
    ]
    assert "host enroll unknown --pool default --public-key" in (checks[1].hint or "")


def test_the_devices_of_a_host_out_of_service_are_not_named_beside_it() -> None:
    """It is the host that is to be resumed."""
    device, host = {**DEVICE, "in_service": False}, {**HOST, "in_service": False}
    assert [check.name for check in found(devices=[device], hosts=[host])] == ["host lab"]


def test_a_strategy_that_raises_is_a_problem() -> None:
    """A pool that grants nothing because its strategy raises is a problem, with what to do."""
    (check,) = judge_pool(pool_view(devices=[DEVICE], hosts=[HOST], problem="picky raised KeyError"))
    assert check.verdict == "problem"
    assert "picky raised KeyError" in check.text
    assert "pool configure default --strategy" in (check.hint or "")


def test_a_rebuilt_pool_says_when_it_opens() -> None:
    """Nobody has to do anything about it."""
    opens = datetime.now(UTC) + timedelta(seconds=30)
    check = judge_pool(pool_view(devices=[DEVICE], hosts=[HOST], opens_at=opens))[0]
    assert (check.verdict, "rebuilt, gives out devices from " in check.text) == ("note", True)


def test_devices_that_are_kept_from_tasks_are_named() -> None:
    """With the reason, for how long, and what to do."""
    broken = {**DEVICE, "reason": "its screen is broken"}
    for state, hint in (("quarantined", "device resume KEY"), ("resting", "device list"), ("releasing", "device list")):
        (check,) = found(devices=[{**broken, "state": state}])
        assert check.name == "device lab/slot-1"
        assert check.text.startswith(f"{state}: for ")
        assert check.text.endswith(", its screen is broken")
        assert hint in (check.hint or "")
    (check,) = found(devices=[{**DEVICE, "in_service": False}])
    assert check.text == "out of service"


def test_of_many_devices_a_few_are_named() -> None:
    """The others are counted."""
    many = [{**DEVICE, "key": f"lab/{n}", "state": "quarantined", "reason": "old"} for n in range(9)]
    (check,) = found(devices=many)
    assert check.name == "device lab/0, lab/1, lab/2, lab/3, lab/4 and 4 more"


def test_hosts_that_do_not_serve_are_named() -> None:
    """Those that are away, that never came, that were drained, and whose key was revoked."""
    hosts = [
        HOST,
        {**HOST, "id": "away", "state": "offline"},
        {**HOST, "id": "new", "state": "offline", "last_seen": None},
        {**HOST, "id": "drained", "in_service": False},
        {**HOST, "id": "revoked", "state": "offline", "public_key": None},
    ]
    checks = found(hosts=hosts)
    assert [check.name for check in checks] == ["host away", "host new", "host drained", "host revoked"]
    assert checks[0].text.startswith("offline; it registered ")
    assert [check.text for check in checks[1:]] == [
        "enrolled, and has never registered",
        "out of service",
        "its key was revoked",
    ]


def test_a_pool_that_is_gone_is_a_problem_of_those_who_name_it() -> None:
    """Its tasks and hosts wait; who creates it again needs to do no more."""
    check = judge_strays("lab", tasks=3, hosts=["a", "b"], ended=True)
    assert (check.verdict, check.text) == ("problem", "it was ended, and 3 open tasks and host a, b need it")
    assert (check.hint or "").startswith("Create it: toolcrib pool create lab")
    assert judge_strays("lab", tasks=1, hosts=[], ended=False).text == "it does not exist, and 1 open task need it"

"""Why a task waits, said so that the person who waits can do something about it."""

from __future__ import annotations

import pytest

from support.rules import START, device, entry, pool, pooled
from toolcrib.scheduling import reasons
from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.device import DeviceState, PooledDevice
from toolcrib.scheduling.pool_view import reasons_for
from toolcrib.scheduling.reasons import pending_reason

IDLE, LEASED, RELEASING = DeviceState.IDLE, DeviceState.LEASED, DeviceState.RELEASING
RESTING, QUARANTINED, OFFLINE = DeviceState.RESTING, DeviceState.QUARANTINED, DeviceState.OFFLINE


def outlook(one: PooledDevice) -> DeviceState | None:
    """Return what a device on a host that is online and in service looks like to those who wait."""
    return one.state if one.in_service else None


def why(devices: list[PooledDevice], *tags: str, below_cap: bool = True, **demand: str) -> tuple[str, str]:
    """Return code and text of the reason for which a task with such a demand waits."""
    reason = pending_reason(Constraints(tags=tags, **demand), devices, outlook, below_cap=below_cap)
    return reason.code, reason.text


def offered(*tags: str) -> list[PooledDevice]:
    """Return a pool's devices: one, with these tags."""
    return [pooled("d1", *tags)]


@pytest.mark.parametrize(
    ("state", "code", "text"),
    [
        (LEASED, "all_busy", "the one device that fits is busy"),
        (RELEASING, "all_busy", "the one device that fits is busy"),
        (RESTING, "resting", "the one device that fits is resting after failures"),
        (QUARANTINED, "quarantined", "the one device that fits is quarantined"),
        (OFFLINE, "offline", "the one device that fits is offline"),
        (IDLE, "in_line", "it waits for its turn"),
    ],
)
def test_the_state_of_the_device_is_the_reason(state: DeviceState, code: str, text: str) -> None:
    """With one device that fits, the reason is what keeps that one."""
    others = [pooled("d2", driver_type="other")]
    assert why([pooled("d1", state=state), *others], driver_type="local") == (code, text)


def test_k05_the_cap_is_the_reason_while_a_device_idles() -> None:
    """At the cap with an idle device, the cap is to blame; with none, the devices are."""
    assert why(offered(), below_cap=False) == ("cap", "the pool runs as many tasks at once as max_concurrent allows")
    assert why([pooled("d1", state=LEASED)], below_cap=False)[0] == "all_busy"


def test_a_device_out_of_service_is_the_reason_whatever_its_state() -> None:
    """An operator's intent comes before the state; a device in service comes before one that is not."""
    out = pooled("d1", in_service=False)
    assert why([out]) == ("out_of_service", "the one device that fits is out of service")
    assert why([out, pooled("d2", in_service=False)])[1] == "each of the 2 devices that fit is out of service"
    assert why([out, pooled("d2", state=LEASED)])[0] == "all_busy"


@pytest.mark.parametrize(
    ("states", "code", "text"),
    [
        (
            [OFFLINE, QUARANTINED, RESTING, LEASED],
            "all_busy",
            "of the 4 devices that fit, 1 busy, 1 resting after failures, 1 quarantined, 1 offline",
        ),
        ([LEASED, RELEASING], "all_busy", "each of the 2 devices that fit is busy"),
        (
            [OFFLINE, RESTING, QUARANTINED],
            "resting",
            "of the 3 devices that fit, 1 resting after failures, 1 quarantined, 1 offline",
        ),
        ([OFFLINE, QUARANTINED], "quarantined", "of the 2 devices that fit, 1 quarantined, 1 offline"),
        ([OFFLINE, OFFLINE], "offline", "each of the 2 devices that fit is offline"),
    ],
)
def test_the_state_that_will_pass_soonest_is_the_reason(states: list[DeviceState], code: str, text: str) -> None:
    """Of several devices, the reason is what will pass without a person's help; the text tells of them all."""
    assert why([pooled(f"d{n}", state=state) for n, state in enumerate(states)]) == (code, text)


def test_s57_an_empty_pool_says_so() -> None:
    """Before any host has registered, that is the reason."""
    assert why([]) == ("no_such_device", "the pool has no devices yet")


@pytest.mark.parametrize(
    ("there", "wanted", "text"),
    [
        (["Linux", "ARM64"], "linux", "no device has tag linux; did you mean Linux?"),
        (
            ["model=Pixel_2", "product=walleye"],
            "model=Pixel 2",
            "no device has tag model=Pixel 2; did you mean model=Pixel_2?",
        ),
        (["model=Pixel_2"], "model=pixel_2", "no device has tag model=pixel_2; did you mean model=Pixel_2?"),
        (["model=Pixel_2"], "model=", "no device has tag model=; did you mean model=Pixel_2?"),
        (["os=16.1.1"], "os=16.1", "no device has tag os=16.1; did you mean os=16.1.1?"),
        (["os=16.1.1"], "os>=16", "no device has tag os>=16; did you mean os=16.1.1?"),
        (["straße"], "STRASSE", "no device has tag STRASSE; did you mean straße?"),
        (["café"], "cafe", "no device has tag cafe; did you mean café?"),
        (["linux"], "windows", "no device has tag windows"),
        (["[weird]"], "*", "no device has tag *; it is compared literally, * is no wildcard"),
        (["[weird]"], ".*", "no device has tag .*; it is compared literally, * is no wildcard"),
        (["[weird]"], "[", "no device has tag ["),
        (
            ["cpu=Intel(R) Xeon(R) E5"],
            "cpu=Intel(R) Xeon(R)*",
            (
                "no device has tag cpu=Intel(R) Xeon(R)*; it is compared literally, * is no wildcard; "
                "did you mean cpu=Intel(R) Xeon(R) E5?"
            ),
        ),
    ],
)
def test_b01_b07_b13_what_nobody_offers_is_named_beside_what_looks_like_it(
    there: list[str], wanted: str, text: str
) -> None:
    """A tag that no device has is shown with the spelling to copy, and a pattern with the rule."""
    assert why(offered(*there), wanted) == ("no_such_device", text)


def test_every_kind_of_demand_is_explained() -> None:
    """Driver type, host and device are explained like tags, several that are wrong at once; many are counted."""
    code, text = why(offered("a"), driver_type="Local", host_id="H", device_id="D1")
    assert code == "no_such_device"
    assert text == (
        "no device has driver type Local; did you mean local?; no device has host H; did you mean h?; "
        "no device has device D1; did you mean d1?"
    )
    assert why(offered("a"), "p", "q", "r", "s", "t")[1] == (
        "no device has tag p; no device has tag q; no device has tag r; and 2 more that no device has"
    )


def test_wishes_that_no_single_device_meets_are_said_together() -> None:
    """Each of them is offered by some device, but none offers all."""
    devices = [pooled("d1", "a"), pooled("d2", "b")]
    assert why(devices, "a", "b") == ("no_such_device", "no single device has all of: tag a, tag b")


def test_slots_of_applications_are_not_for_everybody() -> None:
    """A pool that has no other devices says so."""
    slots = [pooled("d1", "work:resize"), pooled("d2", "work:index")]
    text = "all of the pool's devices are slots of applications, for works of theirs alone"
    assert why(slots) == ("no_such_device", text)
    assert why([*slots, pooled("d3", state=LEASED)]) == ("all_busy", "the one device that fits is busy")
    assert why(slots, "work:resize", "work:index")[1] == "no single device has all of: tag work:resize, tag work:index"


def test_a_pool_says_of_every_task_that_waits_why() -> None:
    """Tasks that do not wait, or are not known, are left out."""
    scheduler = pool(device("d1", "a"), device("d2"), max_concurrent=1)
    scheduler.admit([entry("runs", "a"), entry("capped"), entry("busy", "a"), entry("lost", "b")], START)
    found = reasons_for(scheduler, ["runs", "capped", "busy", "lost", "unknown"])
    assert {task_id: reason.code for task_id, reason in found.items()} == {
        "capped": "cap",
        "busy": "all_busy",
        "lost": "no_such_device",
    }


def test_the_search_for_what_looks_alike_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many tags a pool has and a task asks for, few are compared: a query may not keep a pool from its work."""
    compared = []

    def counting(wanted: str, possible: list[str], n: int) -> list[str]:
        compared.extend(possible)
        return []

    monkeypatch.setattr(reasons, "get_close_matches", counting)
    devices = [pooled(f"d{n}", *(f"serial={n}-{tag}" for tag in range(20))) for n in range(100)]
    assert why(devices, *(f"number={n}" for n in range(64)))[0] == "no_such_device"
    assert len(compared) == reasons.MAX_FAULTS_SAID * reasons.MAX_COMPARED

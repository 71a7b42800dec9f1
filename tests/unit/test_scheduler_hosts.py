"""Hosts that come, come again, change and fall silent, and what that does to their devices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.rules import START, device, entry, holders, key_of, pool, register, settlement, snapshot
from toolcrib.scheduling.device import DeviceSpec, DeviceState
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.messages import HostSilent, HostSnapshot, SettleKind
from toolcrib.scheduling.scheduler import TaskScheduler

GONE = HostSilent(host_id="h", incarnation=1, reason="no heartbeat for 15 s")


def states(scheduler: TaskScheduler) -> dict[str, str]:
    """Return the state of each device, in the order of their registration."""
    return {device.key: str(device.state) for device in scheduler.devices}


def test_a_worker_process_is_counted_once() -> None:
    """Another message of it is not a new incarnation, another process is."""
    scheduler = pool()
    spoken = ("a", "a", "b", "b", "a")
    assert [register(scheduler, "h", [device("d")], START, each).incarnation for each in spoken] == [1, 1, 2, 2, 3]


def test_s9_a_goodbye_from_an_older_worker_is_ignored() -> None:
    """The newer one is there already."""
    scheduler = pool(device("d"))
    register(scheduler, "h", [device("d")], START, "two")
    scheduler.silence(GONE, START)
    assert states(scheduler) == {"h/d": "idle"}


def test_s37_a_goodbye_of_a_host_that_nobody_knows_creates_nothing() -> None:
    """Only a registration makes a host."""
    scheduler = pool()
    scheduler.silence(GONE, START)
    assert not scheduler.state.hosts
    assert not scheduler.devices


def test_what_an_earlier_presence_says_late_is_not_believed() -> None:
    """A worker that has registered again is online, whatever is still on its way about its presence before that."""
    scheduler = pool(device("d"))
    first = scheduler.records.hosts["h"].presence
    assert register(scheduler, "h", [device("d")], START + 9).incarnation == 1
    late = HostSilent(host_id="h", incarnation=1, registration=first, reason="no heartbeat")
    scheduler.silence(late, START + 10)
    assert states(scheduler) == {"h/d": "idle"}
    scheduler.silence(replace(late, registration=first + 1), START + 20)
    assert states(scheduler) == {"h/d": "offline"}


def test_a_host_that_only_tells_of_its_work_is_believed_silent_all_the_same() -> None:
    """It registers again under the presence that it shows, and whose end counts then."""
    scheduler = pool(device("d"))
    first = scheduler.records.hosts["h"].presence
    told = replace(snapshot("h", [device("d")], serial=2), presence=first)
    scheduler.register(key_of("h").signed_snapshot(told, "default"), START)
    scheduler.silence(HostSilent(host_id="h", incarnation=1, registration=first, reason="no heartbeat"), START)
    assert states(scheduler) == {"h/d": "offline"}


def test_k32_idle_devices_of_a_silent_host_are_offline_and_its_leases_live() -> None:
    """What is out stays out until its task gives it back; then it is offline, too, with the reason."""
    scheduler = pool(device("d1"), device("d2"))
    scheduler.admit([entry("t1")], START)
    scheduler.silence(GONE, START + 1)
    assert states(scheduler) == {"h/d1": "leased", "h/d2": "offline"}
    assert (scheduler.devices[1].reason, scheduler.devices[1].since) == ("no heartbeat for 15 s", START + 1)
    scheduler.admit([entry("t2")], START + 2)
    scheduler.settle([settlement(SettleKind.RELEASE, scheduler.held[0])], START + 3)
    assert states(scheduler) == {"h/d1": "offline", "h/d2": "offline"}
    assert not scheduler.held
    register(scheduler, "h", [device("d1"), device("d2")], START + 4, "two")
    assert holders(scheduler) == {"t2": "d1"}


def test_s1_42_a_leased_device_that_its_host_calls_idle_stays_leased() -> None:
    """The pool alone knows of leases; a stale snapshot gives a device to nobody, now or after it came again."""
    scheduler = pool(device("d"))
    scheduler.admit([entry("t1"), entry("t2"), entry("t3")], START)
    for instance in ("one", "two", "one"):
        register(scheduler, "h", [device("d")], START, instance)
    assert holders(scheduler) == {"t1": "d"}


@pytest.mark.parametrize("state", [DeviceState.RESTING, DeviceState.QUARANTINED])
def test_a_restart_of_the_host_does_not_mend_a_device(state: DeviceState) -> None:
    """One that rests or is quarantined stays so; no task gets it."""
    scheduler = pool(device("d"))
    scheduler.state.devices["h/d"].turn(state, START, "it failed three times")
    scheduler.silence(GONE, START)
    register(scheduler, "h", [device("d")], START, "two")
    scheduler.admit([entry("t1")], START)
    assert states(scheduler) == {"h/d": str(state)}
    assert scheduler.devices[0].reason == "it failed three times"


def test_a_device_out_of_service_is_not_given_away() -> None:
    """Also after its host has restarted: that is an intent of the operator, not of the host."""
    scheduler = pool(device("d"))
    scheduler.state.devices["h/d"].in_service = False
    register(scheduler, "h", [device("d")], START, "two")
    scheduler.admit([entry("t1")], START)
    assert not scheduler.held


def test_a_device_that_is_no_longer_in_the_file_goes() -> None:
    """At once if it is idle; when its lease is over if it is leased."""
    scheduler = pool(device("d1"), device("d2"))
    scheduler.admit([entry("t1"), entry("t2", device_id="d3")], START)
    register(scheduler, "h", [device("d3")], START, "two")
    assert states(scheduler) == {"h/d1": "leased", "h/d3": "leased"}
    scheduler.settle([settlement(SettleKind.RELEASE, lease) for lease in scheduler.held], START)
    assert states(scheduler) == {"h/d3": "idle"}


def test_what_a_host_says_anew_of_a_device_counts_from_then_on() -> None:
    """A device that got a tag is given to the task that waited for it."""
    scheduler = pool(device("d"))
    scheduler.admit([entry("t1", "a", driver_type="phone")], START)
    register(scheduler, "h", [device("d", "a", driver_type="phone")], START, "two")
    assert holders(scheduler) == {"t1": "d"}


def test_s11_two_hosts_may_name_their_devices_alike() -> None:
    """A device is its host's: leasing one leaves the other free."""
    scheduler = pool(device("emulator-5554"))
    register(scheduler, "other", [device("emulator-5554")], START)
    scheduler.admit([entry("t1", host_id="other"), entry("t2")], START)
    assert [lease.device_key for lease in scheduler.held] == ["other/emulator-5554", "h/emulator-5554"]


@pytest.mark.parametrize(
    ("host", "message"),
    [
        (snapshot("", [device("d")]), "host_id: '' is not "),
        (snapshot("h" * 65, [device("d")]), "host_id: 'hhh"),
        (snapshot("h", [device("a/b")]), "device_id: 'a/b' is not "),
        (snapshot("h", [device("d")], instance="\ud800"), "instance: "),
        (snapshot("h", [device("d"), device("d")]), "devices of host 'h': d is there twice"),
        (snapshot("h", [device("d", "\ud800")]), "tags of device d: tag '\\ud800' has "),
        (snapshot("h", [device("d", " ")]), "tags of device d: a tag is blank"),
        (snapshot("h", [device("d", driver_type="")]), "driver_type of device d: '' is not "),
        (
            snapshot("h", [replace(device("d"), properties={"a": "\ud800"})]),
            "properties of device d: '\\ud800' is not ",
        ),
    ],
)
def test_a_malformed_description_is_refused_as_a_whole(host: HostSnapshot, message: str) -> None:
    """What could not be matched, shown or kept does not get into the pool, whoever sends it."""
    scheduler = pool()
    with pytest.raises(InvalidRequest) as caught:
        register(scheduler, host.host_id, host.devices, START, host.instance)
    assert caught.value.message.startswith(message)
    assert caught.value.message.isprintable()
    assert not scheduler.devices
    assert all(each.state == "offline" for each in scheduler.state.hosts.values())


def test_b11_tags_of_devices_are_matched_in_one_form() -> None:
    """A driver may find them decomposed, in any order and twice; a task asks for them as they look."""
    spec = DeviceSpec(id="d", driver="adb", driver_type="adb", tags=("z", "cafe\u0301", " a ", "z"))
    scheduler = pool(spec)
    assert scheduler.devices[0].tags == ("a", "caf\u00e9", "z")
    scheduler.admit([entry("t1", "a", "caf\u00e9")], START)
    assert holders(scheduler) == {"t1": "d"}

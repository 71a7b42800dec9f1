"""Whether a device has what a task asks for: everything literally, in one direction."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.rules import pooled
from toolcrib.scheduling.constraints import Constraints, checked_tag, checked_tags


def fits(offered: list[str], wanted: list[str]) -> bool:
    """Return whether a device with some tags fits a demand for others, both as people wrote them."""
    return Constraints(tags=checked_tags(wanted)).matches(pooled("d", *checked_tags(offered)))


@pytest.mark.parametrize(
    ("offered", "wanted", "expected"),
    [
        pytest.param(["Linux", "ARM64"], ["linux"], False, id="b01 letter case counts"),
        pytest.param(["pixel", "android-14"], ["pixel", "android-14"], True, id="b03 a list"),
        pytest.param(["pixel", "android-14"], ["pixel, android-14"], False, id="b03 a comma does not split"),
        pytest.param(["os=16.1.1"], ["os=16.1"], False, id="b05 not the beginning of a version"),
        pytest.param(["os=16.1.1"], ["os>=16"], False, id="b05 no comparison"),
        pytest.param(["android-14"], ["14"], False, id="b05 not a part of a tag"),
        pytest.param(["cpu=Intel(R) Xeon(R) E5"], ["cpu=Intel(R) Xeon(R)*"], False, id="b07 no wildcard"),
        pytest.param(["cpu=Intel(R) Xeon(R) E5"], ["*"], False, id="b07 not even alone"),
        pytest.param(["[weird]"], ["[weird]"], True, id="b07 a bracket is a bracket"),
        pytest.param(["cpu=Intel(R) Xeon(R) E5"], ["cpu=Intel(R) Xeon(R) E5"], True, id="b07 as it is"),
        pytest.param(["abc"], [".*"], False, id="b07 no regular expression"),
        pytest.param(["pixel", "lab-b", "usb"], ["pixel"], True, id="b09 a device may have more"),
        pytest.param(["pixel", "lab-b", "usb"], [], True, id="b09 nothing asked"),
        pytest.param(["pixel", "usb"], ["pixel", "pixel"], True, id="b09 asked twice"),
        pytest.param(["pixel", "usb"], ["pixel", "tablet"], False, id="b09 all of them"),
        pytest.param([], ["pixel"], False, id="b09 not the other way round"),
        pytest.param(["客厅-手机", "📱"], ["客厅-手机", "📱"], True, id="b11 other scripts"),
        pytest.param(["caf\u00e9"], ["cafe\u0301"], True, id="b11 composed or not"),
        pytest.param(["cafe\u0301"], ["caf\u00e9"], True, id="b11 on either side"),
        pytest.param(["straße"], ["STRASSE"], False, id="b11 no folding"),
        pytest.param(["model=Pixel_2", "product=walleye"], ["model=Pixel 2"], False, id="b13 another spelling"),
        pytest.param(["model=Pixel_2", "product=walleye"], ["product=walleye"], True, id="b13 as listed"),
        pytest.param(["model=Pixel_2"], ["model=pixel_2"], False, id="b13 letter case"),
        pytest.param(["model=Pixel_2"], ["model="], False, id="b13 not the beginning"),
    ],
)
def test_tags_are_compared_literally(offered: list[str], wanted: list[str], expected: bool) -> None:
    """A tag matches itself, in NFC, and nothing else; a device needs all that are asked for."""
    assert fits(offered, wanted) is expected


@pytest.mark.parametrize(
    ("demand", "expected"),
    [
        (Constraints(), True),
        (Constraints(driver_type="local"), True),
        (Constraints(driver_type="Local"), False),
        (Constraints(device_id="d"), True),
        (Constraints(device_id="h/d"), False),
        (Constraints(host_id="h"), True),
        (Constraints(host_id="other"), False),
        (Constraints(driver_type="local", device_id="d", host_id="h", tags=("a",)), True),
        (Constraints(driver_type="local", device_id="d", host_id="h", tags=("b",)), False),
        (Constraints(driver_type="", tags=()), False),
    ],
)
def test_every_condition_has_to_hold(demand: Constraints, expected: bool) -> None:
    """Driver type, device and host are compared exactly; one that is absent holds for every device."""
    assert demand.matches(pooled("d", "a")) is expected


@pytest.mark.parametrize(
    ("offered", "wanted", "expected"),
    [
        (["work:resize"], [], False),
        (["work:resize", "linux"], ["linux"], False),
        (["work:resize", "linux"], ["work:resize", "linux"], True),
        (["work:resize", "work:index"], ["work:index"], True),
        (["work:resize"], ["work:index"], False),
        (["linux"], ["work:resize"], False),
        (["homework:resize"], [], True),
    ],
)
def test_an_applications_slots_serve_its_works_alone(offered: list[str], wanted: list[str], expected: bool) -> None:
    """Who asks for no work does not get a device that is tagged with one; who does gets one that has it."""
    assert fits(offered, wanted) is expected


@given(st.lists(st.text(min_size=1).filter(lambda text: text.strip() and text.isprintable()), max_size=5))
def test_equal_demands_are_equal_values(tags: list[str]) -> None:
    """Order and repeats do not matter, and checking what was checked changes nothing: such tasks share a bucket."""
    tags = [tag for tag in tags if len(tag) < 40]
    clean = checked_tags(tags)
    assert clean == checked_tags([*reversed(tags), *tags]) == checked_tags(clean)
    assert all(checked_tag(tag, "tags") == tag for tag in clean)
    assert fits(tags, tags)


def test_a_demand_reads_as_a_person_would_say_it() -> None:
    """It is part of messages."""
    demand = Constraints(driver_type="adb", tags=("a", "b"), device_id="d", host_id="h")
    assert str(demand) == "driver type adb, device d, host h, tag a, tag b"
    assert str(Constraints()) == "any device"

"""What devices have and tasks ask for: rows B01 to B15 of inputs that went wrong elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.rules import pooled
from toolcrib.client import InvalidRequest
from toolcrib.scheduling.constraints import checked_tags
from toolcrib.scheduling.device import DeviceState
from toolcrib.scheduling.reasons import pending_reason
from toolcrib.scheduling.request import parse_request
from toolcrib.worker.host_file import load_host_file

XEON = "cpu=Intel(R) Xeon(R) E5"
PHONE = ["pixel", "android-14", "lab-b", "usb"]
LETTERS = ["\u5ba2\u5385-\u624b\u673a", "caf\u00e9", "\U0001f4f1", "stra\u00dfe"]
FOUND = ["model=Pixel_2", "product=walleye"]


def why(offered: Sequence[str], kind: str, **wanted: Any) -> str | None:
    """Return why a task does not get the only device there is; None if it does."""
    device = pooled("d1", *checked_tags(offered), driver_type=kind)
    demand = parse_request({"goal": "x", **wanted}).constraints
    if demand.matches(device):
        return None
    return pending_reason(demand, [device], lambda _: DeviceState.IDLE, below_cap=True).text


@pytest.mark.parametrize(
    ("offered", "wanted", "reason"),
    [
        pytest.param(["Linux"], ["linux"], "no device has tag linux; did you mean Linux?", id="b01"),
        pytest.param(["Linux"], ["Linux"], None, id="b01_exact"),
        pytest.param(
            PHONE,
            ["pixel, android-14"],
            "no device has tag pixel, android-14; commas do not separate tags: give each one by itself"
            "; did you mean android-14?",
            id="b03",
        ),
        pytest.param(["os=16.1.1"], ["os=16.1"], "no device has tag os=16.1; did you mean os=16.1.1?", id="b05"),
        pytest.param(["os=16.1.1"], ["os>=16"], "no device has tag os>=16; did you mean os=16.1.1?", id="b05_range"),
        pytest.param(
            [XEON],
            ["cpu=Intel(R) Xeon(R)*"],
            f"no device has tag {XEON[:-3]}*; it is compared literally, * is no wildcard; did you mean {XEON}?",
            id="b07",
        ),
        pytest.param(["[weird]"], ["[weird]"], None, id="b07_bracket"),
        pytest.param([XEON], [XEON], None, id="b07_exact"),
        pytest.param(
            [XEON], [".*"], "no device has tag .*; it is compared literally, * is no wildcard", id="b07_expression"
        ),
        pytest.param(PHONE, ["pixel"], None, id="b09"),
        pytest.param(PHONE, [], None, id="b09_nothing"),
        pytest.param(PHONE, ["pixel", "pixel"], None, id="b09_twice"),
        pytest.param(PHONE, ["pixel", "tablet"], "no device has tag tablet", id="b09_not_all"),
        pytest.param(LETTERS, LETTERS[:3:2], None, id="b11"),
        pytest.param(LETTERS, ["cafe\u0301"], None, id="b11_other_code_points"),
        pytest.param(LETTERS, ["STRASSE"], "no device has tag STRASSE; did you mean stra\u00dfe?", id="b11_case"),
        pytest.param(
            FOUND, ["model=Pixel 2"], "no device has tag model=Pixel 2; did you mean model=Pixel_2?", id="b13"
        ),
        pytest.param(FOUND, ["product=walleye"], None, id="b13_other_name"),
        pytest.param(
            FOUND, ["model=pixel_2"], "no device has tag model=pixel_2; did you mean model=Pixel_2?", id="b13_case"
        ),
        pytest.param(FOUND, ["model="], "no device has tag model=; did you mean model=Pixel_2?", id="b13_half"),
    ],
)
def test_case_b_tags(offered: list[str], wanted: list[str], reason: str | None) -> None:
    """Compared literally, whole, and after normalisation; all that are asked for must be there, and why not is told."""
    assert why(offered, "adb", tags=wanted) == reason


def test_case_b01_driver_types_are_compared_as_tags_are() -> None:
    """Literally, with the same hint; whoever asks for none takes any."""
    assert why([], "local", driver_type="Local") == "no device has driver type Local; did you mean local?"
    assert why(["lab-b"], "adb", tags=["lab-b"]) is None


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ('"pixel, android-14"', ":4:55: host.devices[0].tags: must be a list"),
        ("[14, 3.10]", ":4:56: host.devices[0].tags[0]: 14 is a number, put it in quotes"),
        ("[android-14, 2026-11-30]", ":4:68: host.devices[0].tags[1]: 2026-11-30 is a date, put it in quotes"),
        ("[android-14, no]", ":4:68: host.devices[0].tags[1]: no means true or false, put it in quotes"),
    ],
)
def test_case_b03_b05_a_tag_is_a_text_in_a_list(tmp_path: Path, tags: str, said: str) -> None:
    """A host file with anything else is refused, with its place; a request, too."""
    file = tmp_path / "host.yaml"
    file.write_text(f"host:\n  id: h\n  devices:\n    - {{id: d1, driver: local, driver_type: adb, tags: {tags}}}\n")
    with pytest.raises(InvalidRequest) as caught:
        load_host_file(file)
    assert caught.value.message.removeprefix(str(file)) == said
    with pytest.raises(InvalidRequest, match="tags: must be a list of texts"):
        parse_request({"goal": "x", "tags": "pixel, android-14"})
    with pytest.raises(InvalidRequest, match="tags: 14 is not a text; put it in quotes"):
        parse_request({"goal": "x", "tags": [14]})


def test_case_b15_a_field_that_nobody_knows_is_refused() -> None:
    """Ignored, it would mean the wrong device; the known ones are named."""
    for field, value in (("capabilities", {"se:networkname": "dev_v4"}), ("udids", ["n2"])):
        with pytest.raises(InvalidRequest, match=f"{field}: unknown field; (known|did you mean)"):
            parse_request({"goal": "x", "driver_type": "browser", "tags": ["chrome"], field: value})

"""What the driver `browser` makes of a device's properties; real Chromium is in tests/integration/test_browsers.py."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.guarded import running_lab
from support.leases import lease_context
from support.pretender import written_pretender
from toolcrib.activities.context import LeaseContext
from toolcrib.activities.drivers.browser import BrowserDriver
from toolcrib.activities.drivers.care import DeviceCare
from toolcrib.activities.drivers.finding import DeviceSearch
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.errors import InvalidRequest


@pytest.fixture
def pretender(tmp_path: Path) -> str:
    """A program that does as Chromium does when it starts."""
    return written_pretender(tmp_path)


@pytest.fixture
async def context(tmp_path: Path) -> AsyncIterator[LeaseContext]:
    """The context of a lease, with a real guard."""
    async with running_lab() as lab:
        found = lease_context(lab.guard, tmp_path)
        found.environment["TOOLCRIB_LEASE_ID"] = found.lease.id
        yield found


def device(**properties: str) -> DeviceSpec:
    """Describe a browser."""
    return DeviceSpec(id="b", driver="browser", driver_type="browser", properties=properties)


async def started(context: LeaseContext, **properties: str) -> list[str]:
    """Start a browser with these properties, and return its arguments."""
    await BrowserDriver().prepare(device(**properties), context)
    return (context.folder / ".browser/profile/arguments").read_text().splitlines()


async def test_a_browser_has_all_that_is_its_in_its_leases_folder(context: LeaseContext, pretender: str) -> None:
    """Profile, home and temporary files; it carries the lease's id, the work hears of its address, and all is wiped."""
    arguments = await started(context, executable=pretender)
    folder = context.folder / ".browser"
    assert context.environment["TOOLCRIB_CDP_URL"] == "http://127.0.0.1:4711"
    assert f"--user-data-dir={folder}/profile" in arguments
    assert {"--headless=new", "--remote-debugging-port=0"} < set(arguments)
    variables = (folder / "profile/variables").read_text().splitlines()
    assert variables == [f"{folder}/home", context.lease.id, f"{folder}/tmp"]
    assert folder.stat().st_mode & 0o777 == 0o700
    await context.guard.end(context.lease.id)
    await BrowserDriver().clean(device(), context)
    assert list(context.folder.iterdir()) == []


async def test_properties_shape_it(context: LeaseContext, pretender: str) -> None:
    """Size, flags as a shell would split them, and a window that is seen."""
    arguments = await started(
        context, executable=pretender, window_size="1280x720", flags="--lang=de '--user-agent=a b'", headless="no"
    )
    assert {"--window-size=1280,720", "--lang=de", "--user-agent=a b"} < set(arguments)
    assert "--headless=new" not in arguments


@pytest.mark.parametrize("user", [0, 1000])
async def test_it_has_no_sandbox_only_as_root(
    context: LeaseContext, pretender: str, monkeypatch: pytest.MonkeyPatch, user: int
) -> None:
    """As root Chromium does not start with one."""
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert ("--no-sandbox" in await started(context, executable=pretender)) == (user == 0)


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"executable": "no-such"}, r"there is no Chromium on this host \(no-such\)"),
        ({"window_size": "big"}, "property window_size: 'big' is no size such as '1280x720'"),
        ({"headless": "maybe"}, "property headless: 'maybe' is neither 'yes' nor 'no'"),
        ({"flags": "'--lang"}, "property flags: No closing quotation"),
    ],
)
async def test_what_makes_no_sense_is_found_before_it_is_prepared(
    context: LeaseContext, properties: dict[str, str], said: str
) -> None:
    """The check says what is wrong."""
    with pytest.raises(InvalidRequest, match=said):
        await BrowserDriver().check(device(**{"executable": "sh", **properties}), context)


async def test_a_host_without_chromium_does_not_find_browsers(pretender: str) -> None:
    """The error says how to get it; with a program there are as many as the host file asks for."""
    care, search = DeviceCare("browser"), DeviceSearch(driver="browser", driver_type="browser", count=2)
    with pytest.raises(InvalidRequest, match="driver browser: there is no Chromium on this host") as refused:
        await care.find(replace(search, properties={"executable": "no-such"}))
    assert "apt-get install chromium" in (refused.value.hint or "")
    found = await care.find(replace(search, properties={"executable": pretender}))
    assert [one.id for one in found] == ["browser-1", "browser-2"]


async def test_clean_up_is_done_whatever_was_prepared(context: LeaseContext) -> None:
    """Also if nothing was."""
    await BrowserDriver().clean(device(), context)

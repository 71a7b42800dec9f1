"""The driver `browser` with real Chromium: what is of one lease is never seen in another one, and ends with it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.async_api import Playwright, async_playwright

from support.browser import CHROMIUM, NO_CHROMIUM
from support.lab import Lab, eventually, until, until_status
from support.processes import host_file, toolcrib
from support.traces import traces
from toolcrib.client import TaskHandle
from toolcrib.scheduling.device import DeviceSpec

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)

LEASES = 10
TTL = 3.0
ROOM = 5.0
"""Seconds for a slow machine."""

LOOK_AND_LEAVE_SOMETHING = """() => {
    const seen = [document.cookie, localStorage.length, history.length];
    document.cookie = "visited=yes; max-age=3600";
    localStorage.setItem("visited", "yes");
    return seen;
}"""


def browser(device_id: str, **properties: str) -> DeviceSpec:
    """Describe a device of the driver `browser`."""
    return DeviceSpec(id=device_id, driver="browser", driver_type="browser", properties=properties)


class Page(BaseHTTPRequestHandler):
    """A page without anything on it."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - so it is called
        """Say nothing."""


@pytest.fixture
def site() -> Iterator[str]:
    """A site on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
async def playwright() -> AsyncIterator[Playwright]:
    """Playwright, to look at the browsers of others."""
    async with async_playwright() as playwright:
        yield playwright


def holding(folder: Path) -> str:
    """Return a goal that writes down where its browser is, and holds the lease until it may go."""
    return f"""
        pwd >"{folder}/$TOOLCRIB_TASK_ID.folder"
        part="{folder}/$TOOLCRIB_TASK_ID.part"
        echo "$TOOLCRIB_CDP_URL" >"$part" && mv "$part" "{folder}/$TOOLCRIB_TASK_ID"
        while [ ! -e "{folder}/$TOOLCRIB_TASK_ID.go" ]; do sleep 0.05; done
    """


async def address(task: TaskHandle, folder: Path) -> str:
    """Return where the browser of a task is, as soon as it says so."""
    file = folder / task.id

    async def found() -> bool:
        return file.exists()

    await eventually(found, bool)
    return file.read_text().strip()


async def test_nothing_of_a_lease_is_seen_in_the_next(
    lab: Lab, tmp_path: Path, site: str, playwright: Playwright
) -> None:
    """Ten leases on two browsers: each finds no cookie and no storage, and leaves no process and no profile."""
    crib = await lab.pool()

    async def visit(task: TaskHandle) -> list[object]:
        url = await address(task, tmp_path)
        chromium = await playwright.chromium.connect_over_cdp(url)
        page = chromium.contexts[0].pages[0]
        await page.goto(site)
        seen: list[object] = await page.evaluate(LOOK_AND_LEAVE_SOMETHING)
        lease = (await task.status()).attempts[0].lease_id
        folder = (tmp_path / f"{task.id}.folder").read_text().strip()
        assert traces(lease)
        assert traces(f"{folder}/.browser")
        (tmp_path / f"{task.id}.go").touch()
        await task.result()
        assert traces(lease, folder) == []
        assert not Path(folder, ".browser").exists()
        return seen

    async with lab.host(devices=[browser("browser-1"), browser("browser-2", window_size="800x600")]):
        tasks = [await crib.submit(holding(tmp_path), driver_type="browser") for _ in range(LEASES)]
        seen = await asyncio.gather(*map(visit, tasks))
        views = [await task.status() for task in tasks]
    assert seen == [["", 0, 2]] * LEASES
    assert [len(view.attempts) for view in views] == [1] * LEASES
    assert {view.device_id for view in views} == {"browser-1", "browser-2"}


async def test_a_killed_worker_leaves_no_browser(lab: Lab, tmp_path: Path) -> None:
    """With SIGKILL: the browser is gone before anybody can get its device; its profile is, when the worker is back."""
    crib = await lab.pool(lease_ttl=TTL)
    file = host_file(tmp_path, "lab-1", [browser("browser-1"), browser("browser-2")])
    async with toolcrib(lab.client, tmp_path, "worker", "--role", "host", "--config", str(file)) as worker:
        task = await crib.submit(holding(tmp_path))
        await address(task, tmp_path)
        folder = (tmp_path / f"{task.id}.folder").read_text().strip()
        lease = (await task.status()).attempts[0].lease_id
        assert traces(lease, folder)
        worker.kill()
        async with asyncio.timeout(TTL + ROOM):
            while traces(lease, folder):
                await asyncio.sleep(0.02)
    (tmp_path / f"{task.id}.go").touch()
    async with toolcrib(lab.client, tmp_path, "worker", "--role", "host", "--config", str(file)):
        view = await until_status(task, "done")
        assert not Path(folder).exists()
    assert [(one.device_id, one.outcome) for one in view.attempts] == [("browser-1", "expired"), ("browser-2", "done")]


async def test_a_browser_that_does_not_start_fails_no_test(lab: Lab) -> None:
    """The attempt has expired, says why, and the next one is on another device."""
    crib = await lab.pool()
    broken = [browser("a", executable="false"), browser("b", executable="no-such-browser")]
    async with lab.host(devices=[*broken, browser("c")]):
        task = await crib.submit('test -n "$TOOLCRIB_CDP_URL"', max_attempts=3)
        view = await until(task, lambda view: view.status in ("done", "failed"))
    assert [(one.device_id, one.outcome) for one in view.attempts] == [
        ("a", "expired"),
        ("b", "expired"),
        ("c", "done"),
    ]
    reasons = [attempt.reason or "" for attempt in view.attempts]
    assert reasons[0].endswith("could not prepare a: the browser ended with code 1: without a word")
    assert "there is no Chromium on this host (no-such-browser). Install it" in reasons[1]

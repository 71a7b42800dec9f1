"""The demo's second part: examples/browser, as it is, on real Chromium."""

from __future__ import annotations

import asyncio
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from rich.console import Console

from toolcrib.activities.drivers.browser import program
from toolcrib.activities.host_keys import create_key
from toolcrib.client.demo.jobs import ran
from toolcrib.client.demo.lab import Lab
from toolcrib.client.task import TaskHandle
from toolcrib.scheduling.errors import InvalidRequest, TaskFailed
from toolcrib.scheduling.names import DEFAULT_POOL

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "browser"
HOST: Final = "browsers"
TIME_LIMIT: Final = 60.0
LAPSED: Final = "lease_expired"
"""How a task ends whose browser does not start, as in a container that forbids Chromium its sandbox."""
ORDERS: Final = (("Earl Grey", 3), ("Assam", 2))


async def show_browser(console: Console, running: Lab) -> bool:
    """Order tea in two browsers, and return whether the shop's answers were right; what is missing is no fault."""
    if (lack := missing()) is not None:
        console.print(f"\nTests in browsers are left out: {lack}", highlight=False, soft_wrap=True)
        return True
    console.print("\nNow two tests, each in a Chromium of its own (examples/browser) ...")
    try:
        async with asyncio.timeout(TIME_LIMIT):
            return all([await _show(console, running, order) for order in await _orders(running)])
    except TimeoutError:
        console.print(f"[red]They did not end within {TIME_LIMIT:g} s.")
        return False


def missing() -> str | None:
    """Return what this part needs and does not find, and how to get it; None if all is there."""
    if not EXAMPLE.is_dir():
        return "examples/browser is in toolcrib's source tree alone."
    if find_spec("playwright") is None:
        return "Playwright is not installed: pip install playwright"
    try:
        program({})
    except InvalidRequest:
        return "there is no Chromium on this machine; on Debian: apt-get install chromium"
    return None


async def _orders(running: Lab) -> list[TaskHandle]:
    """Start the shop and a host with browsers, and submit the orders."""
    shop = await running.start(sys.executable, "shop.py", "--port", "0", cwd=EXAMPLE, stdout=asyncio.subprocess.PIPE)
    assert shop.stdout is not None
    url = (await shop.stdout.readline()).decode().strip()
    await running.crib.pool(DEFAULT_POOL).enroll_host(HOST, create_key(running.home, HOST).public)
    await running.start_worker("--role", "host", "--config", "lab.yaml", cwd=EXAMPLE)
    return [
        await running.crib.submit(
            name=f"order {tea}",
            workflow="order-tea",
            inputs={"url": url, "tea": tea, "cups": cups},
            driver_type="browser",
            pool=DEFAULT_POOL,
            max_attempts=1,
        )
        for tea, cups in ORDERS
    ]


async def _show(console: Console, running: Lab, order: TaskHandle) -> bool:
    """Print what became of an order, and return whether nothing is wrong with it."""
    try:
        result = (await order.result())["outputs"]
    except TaskFailed as error:
        console.print(f"{(await order.status()).name}: {error.message}", highlight=False, markup=False, soft_wrap=True)
        return error.error_code == LAPSED
    view = await order.status()
    picture = running.home / "artifacts" / order.id / "1" / result["picture"]
    console.print(
        f"{view.name:<20} done    {view.host_id}/{view.device_id}  {ran(view):.1f} s    {result['answer']} "
        f"(picture: {picture.stat().st_size // 1024} KiB)",
        highlight=False,
        soft_wrap=True,
    )
    return True

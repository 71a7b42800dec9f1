"""The example with a test in a browser, on real Chromium."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.browser import CHROMIUM, NO_CHROMIUM
from support.lab import PATIENCE, Lab
from support.processes import toolcrib
from toolcrib.client import TaskFailed

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)

EXAMPLE = Path(__file__).parents[2] / "examples" / "browser"


@pytest.fixture
async def shop() -> AsyncIterator[str]:
    """The example's shop on a free port."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(EXAMPLE / "shop.py"), "--port", "0", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout
    async with asyncio.timeout(PATIENCE):
        yield (await process.stdout.readline()).decode().strip()
    process.kill()
    await process.wait()


async def test_tea_is_ordered_in_a_browser_of_the_lease(
    lab: Lab, tmp_path: Path, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shop's answer decides: done or failed, at the first attempt, and with a picture of it."""
    monkeypatch.syspath_prepend(EXAMPLE)  # as if the worker was started there
    worker = toolcrib(lab.client, tmp_path, "worker", "--role", "host", "--config", str(EXAMPLE / "lab.yaml"))
    async with worker:
        orders = [
            await lab.crib.submit(
                workflow="order-tea", driver_type="browser", inputs={"url": shop, "tea": tea, "cups": cups}
            )
            for tea, cups in (("Darjeeling", 3), ("<b>Assam</b>", 12))
        ]
        assert (await orders[0].result())["outputs"] == {
            "answer": "3 cups of Darjeeling are on their way.",
            "picture": "answer.png",
        }
        with pytest.raises(TaskFailed, match=r"step check .* the shop says: We have 9 cups\."):
            await orders[1].result()
    for task in orders:
        assert len((await task.status()).attempts) == 1
        picture = tmp_path / "home" / "artifacts" / task.id / "1" / "answer.png"
        assert picture.read_bytes().startswith(b"\x89PNG")

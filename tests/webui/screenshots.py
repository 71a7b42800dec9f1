"""`make screenshots`: takes the pictures of Temporal's Web UI that the README shows."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Final

from playwright.async_api import expect

from support.browser import CHROMIUM, NO_CHROMIUM, WIDTH, WebUi, browser_at
from webui.scene import FLASH, GROUP, LOGIN, SMOKE, SOAK, scene

IMAGES: Final = Path(__file__).parents[2] / "docs" / "images"
PIXELS: Final = 1200
"""Width of a picture."""
HEIGHT: Final = 640
"""Of the window, in CSS pixels."""
MAX_BYTES: Final = 150_000

WORKFLOWS: Final = "/namespaces/default/workflows"


async def take() -> None:
    """Set up a lab, and write all pictures."""
    with tempfile.TemporaryDirectory() as folder:
        async with scene(Path(folder)) as shown, browser_at(shown.url, height=HEIGHT, scale=PIXELS / WIDTH) as ui:
            await ui.open(f"{WORKFLOWS}?query=ToolcribGroup%3D%22{GROUP.id}%22&savedQuery=Group")
            await ui.shows_workflows(SMOKE, SOAK, LOGIN, FLASH)
            await _picture(ui, "web-ui-group")
            await ui.open_workflow(SOAK)
            await ui.open_details()
            await expect(ui.details).to_contain_text("40%")
            await _picture(ui, "web-ui-task")
            await ui.open(f"{WORKFLOWS}/toolcrib-pool-default")
            await ui.open_details()
            await expect(ui.details).to_contain_text("leased")
            await _picture(ui, "web-ui-pool")


async def _picture(ui: WebUi, name: str) -> None:
    file = IMAGES / f"{name}.png"
    await ui.page.screenshot(path=file, animations="disabled")
    size = file.stat().st_size
    print(f"{file.relative_to(IMAGES.parents[1])}: {size:,} bytes")
    if size > MAX_BYTES:
        raise SystemExit(f"{file} has more than {MAX_BYTES:,} bytes\nShow less on it, or make it smaller.")


def main() -> None:
    """Take them, if there is a browser."""
    if CHROMIUM is None:
        sys.exit(NO_CHROMIUM)
    asyncio.run(take())


if __name__ == "__main__":
    main()

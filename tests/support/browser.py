"""A real browser, for what people see in Temporal's Web UI."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from playwright.async_api import FrameLocator, Locator, Page, async_playwright, expect

from support.lab import PATIENCE

CHROMIUM: Final = shutil.which("chromium")
"""Where Debian's Chromium is; None: it is not installed."""

NO_CHROMIUM: Final = "there is no Chromium on this machine\nInstall it: apt-get install chromium"

WIDTH: Final = 1440
"""Of the window, in CSS pixels: that of a notebook."""

ONLY_HERE: Final = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"
"""The Web UI asks the world for newer versions of itself; a test must not depend on what it hears."""


@dataclass(frozen=True)
class WebUi:
    """The Web UI in one tab of a browser."""

    page: Page

    async def open(self, path: str) -> None:
        """Open a path of the Web UI."""
        await self.page.goto(path, wait_until="domcontentloaded")

    @property
    def rows(self) -> Locator:
        """The workflows of the list that is open."""
        return self.page.get_by_test_id("workflows-summary-configurable-table-row")

    def link(self, workflow_id: str) -> Locator:
        """The link to a workflow in the list that is open."""
        return self.rows.get_by_role("link", name=workflow_id, exact=True)

    async def shows_workflows(self, *ids: str) -> None:
        """Wait until the list that is open shows these workflows and no others."""
        for workflow_id in ids:
            await expect(self.link(workflow_id)).to_be_visible()
        await expect(self.rows).to_have_count(len(ids))

    async def open_workflow(self, workflow_id: str) -> None:
        """Follow the link to a workflow of the list that is open."""
        await self.link(workflow_id).click()
        await expect(self.page.get_by_test_id("workflow-id-heading")).to_contain_text(workflow_id)

    async def open_details(self) -> None:
        """Show the summary and the live details of the workflow that is open."""
        await self.page.get_by_test_id("user-metadata-tab").click()
        await expect(self.details).to_be_visible()

    @property
    def details(self) -> Locator:
        """The live details that are open: the block of text that a workflow says of itself."""
        return self._frame("current-details").locator("pre")

    async def details_fit(self) -> bool:
        """Return whether the live details that are open are seen to the end of each line, without scrolling."""
        return bool(await self.details.evaluate("block => block.scrollWidth <= block.clientWidth"))

    @property
    def summary(self) -> Locator:
        """The summary that is open."""
        return self._frame("summary").locator("body")

    def _frame(self, part: str) -> FrameLocator:
        return self.page.frame_locator(f"#user-metadata-{part}")


@asynccontextmanager
async def browser_at(url: str, *, height: int = 900, scale: float = 1.0) -> AsyncIterator[WebUi]:
    """Run a headless Chromium with one tab, in which paths are those below `url`."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", ONLY_HERE])
        page = await browser.new_page(
            base_url=url,
            viewport={"width": WIDTH, "height": height},
            device_scale_factor=scale,
            locale="en-GB",
            timezone_id="UTC",
        )
        page.set_default_timeout(PATIENCE * 1000)
        expect.set_options(timeout=PATIENCE * 1000)
        try:
            yield WebUi(page)
        finally:
            await browser.close()

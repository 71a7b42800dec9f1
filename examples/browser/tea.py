"""What the steps of definitions/order-tea.yaml do in the browser of their lease."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright


@contextmanager
def open_page() -> Iterator[Page]:
    """Yield the page that the lease's browser has open; the next step finds it as this one leaves it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.connect_over_cdp(os.environ["TOOLCRIB_CDP_URL"])
        yield browser.contexts[0].pages[0]


def order(url: str, tea: str, cups: int) -> str:
    """Fill in the shop's form, send it, and return what the shop answers."""
    with open_page() as page:
        page.goto(url)
        page.get_by_label("Tea").fill(tea)
        page.get_by_label("Cups").fill(str(cups))
        page.get_by_role("button", name="Order").click()
        return page.get_by_role("status").inner_text()


def take_picture(name: str) -> str:
    """Keep a picture of the page among the task's artifacts, and return its name."""
    with open_page() as page:
        page.screenshot(path=Path(os.environ["TOOLCRIB_ARTIFACTS"], name))
    return name

"""A test of the shop, in the browser of a lease."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from toolcrib.activities.context import RunFailed


@contextmanager
def open_page() -> Iterator[Page]:
    """Yield the page that the lease's browser has open; it stays as it is left."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.connect_over_cdp(os.environ["TOOLCRIB_CDP_URL"])
        yield browser.contexts[0].pages[0]


def order(url: str = "http://127.0.0.1:8000", tea: str = "Earl Grey", cups: int = 2) -> dict[str, str]:
    """Order tea, check what the shop answers, and keep a screenshot of it."""
    with open_page() as page:
        page.goto(url)
        page.get_by_label("Tea").fill(tea)
        page.get_by_label("Cups").fill(str(cups))
        page.get_by_role("button", name="Order").click()
        answer = page.get_by_role("status").inner_text()
        page.screenshot(path=Path(os.environ["TOOLCRIB_ARTIFACTS"], "answer.png"))
    expected = f"{cups} cups of {tea} are on their way."
    if answer != expected:
        raise RunFailed(f"the shop says {answer!r}, not {expected!r}")
    return {"answer": answer, "screenshot": "answer.png"}

"""Temporal's Web UI as a person sees it, in a real browser. Rows C-01, C-07."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import expect

from support.browser import CHROMIUM, NO_CHROMIUM, WebUi, browser_at
from support.lab import eventually, until_status
from toolcrib.client import TaskHandle, UnknownTask
from webui.scene import FLASH, LOGIN, SMOKE, SOAK, Scene, scene

pytestmark = [pytest.mark.xdist_group("webui"), pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)]

README: Final = Path(__file__).parents[2] / "README.md"
LINKS: Final[list[str]] = re.findall(r"\]\(http://127\.0\.0\.1:8233(/[^)\s]+)\)", README.read_text(encoding="utf-8"))

VIEWS: Final = {
    "Running": [SOAK],
    "Waiting": [FLASH],
    "Failed": [LOGIN],
    "Pools": ["toolcrib-pool-default"],
    "Hosts": ["toolcrib-host-lab-1", "toolcrib-host-lab-2"],
    "Device": [SMOKE, SOAK],
    "Group": [SMOKE, SOAK, LOGIN, FLASH],
}
"""What each link in the README has to show, by the name of its view."""

WORKFLOWS: Final = "/namespaces/default/workflows"


@pytest.fixture(scope="module")
async def shown(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    """A lab with a task in each state."""
    async with scene(tmp_path_factory.mktemp("scene")) as shown:
        yield shown


@pytest.fixture(scope="module")
async def ui(shown: Scene) -> AsyncIterator[WebUi]:
    """The lab's Web UI in a browser."""
    async with browser_at(shown.url) as ui:
        yield ui


def named(link: str) -> str:
    """Return the name of the view that a link opens."""
    return parse_qs(urlsplit(link).query)["savedQuery"][0]


def link_to(view: str) -> str:
    """Return the README's link to a view."""
    return next(link for link in LINKS if named(link) == view)


def test_every_view_is_in_the_readme() -> None:
    """The README has a link for each view that is checked here, and no other."""
    assert sorted(map(named, LINKS)) == sorted(VIEWS)


@pytest.mark.parametrize("link", LINKS, ids=named)
async def test_the_readmes_links_show_what_they_say(ui: WebUi, link: str) -> None:
    """Each opens a view of its name, with the workflows that belong there and no others."""
    await ui.open(link)
    await ui.shows_workflows(*VIEWS[named(link)])
    await expect(ui.page.get_by_test_id("saved-views-button")).to_have_text(named(link))


async def test_views_are_kept(ui: WebUi) -> None:
    """A view that was opened once is offered from then on."""
    await ui.open(link_to("Failed"))
    await ui.shows_workflows(*VIEWS["Failed"])
    await ui.page.get_by_role("link", name="Workflows", exact=True).click()
    await expect(ui.link(SMOKE)).to_be_visible()
    await ui.page.get_by_test_id("saved-views-button").click()
    await ui.page.locator("#workflow-saved-views-menu").get_by_text("Failed", exact=True).first.click()
    await ui.shows_workflows(*VIEWS["Failed"])


async def test_c_07_a_running_task_shows_its_live_details(ui: WebUi, shown: Scene) -> None:
    """One sees its name, status, device and progress, and on pressing R how it has gone on."""
    await shown.go_on(0.4, "round 4 of 10")
    await ui.open(f"{WORKFLOWS}/{SOAK}")
    await ui.open_details()
    await expect(ui.summary).to_contain_text("soak test")
    for text in ("soak test", "dispatched", "40% round 4 of 10", "lab-1/slot-1  running"):
        await expect(ui.details).to_contain_text(text)
    await shown.go_on(0.8, "round 8 of 10")
    await ui.page.keyboard.press("r")
    await expect(ui.details).to_contain_text("80% round 8 of 10")


async def test_a_pool_shows_who_has_its_devices(ui: WebUi, shown: Scene) -> None:
    """One sees each device with its state and its task, to the end of the line, or else the reason."""
    task = await shown.lab.crib.submit("sleep 60", host_id="lab-2")
    await until_status(task, "dispatched")
    await ui.open(f"{WORKFLOWS}/toolcrib-pool-default")
    await ui.open_details()
    lines = (rf"lab-1/slot-1 +leased +{SOAK}", "lab-3/slot-1 +offline +its worker stopped", f"leased +{task.id}")
    for line in lines:
        await expect(ui.details).to_contain_text(re.compile(line))
    assert await ui.details_fit()
    await task.cancel()
    await shown.settled()


async def test_a_failed_task_says_why(ui: WebUi) -> None:
    """It is failed for Temporal as well, and its details have the reason."""
    await ui.open(link_to("Failed"))
    await ui.open_workflow(LOGIN)
    await expect(ui.page.get_by_test_id("execution-status").first).to_have_text("Failed", ignore_case=True)
    await ui.open_details()
    await expect(ui.details).to_contain_text("command exited with code 1: 2 tests failed")


async def test_a_task_is_cancelled_by_the_button(ui: WebUi, shown: Scene) -> None:
    """It ends as cancelled in toolcrib as well. Its name is shown letter by letter, whatever it means in Markdown."""
    name = "__init__ *.py `date` <b>x</b>"
    task = await shown.lab.crib.submit("true", name=name, tags=["nowhere"])
    await ui.open(f"{WORKFLOWS}/{task.id}")
    await ui.open_details()
    await expect(ui.details).to_contain_text(name)
    await ui.page.get_by_role("button", name="Request Cancellation").click()
    await ui.page.get_by_role("dialog").get_by_role("button", name="Confirm").click()
    await until_status(task, "cancelled")
    await shown.settled()


async def test_a_task_can_be_started_there(ui: WebUi, shown: Scene) -> None:
    """With the type, task queue and input that the README names."""
    await ui.open(f"{WORKFLOWS}/start-workflow")
    await ui.page.get_by_role("textbox", name="Data").click()
    await ui.page.keyboard.insert_text('{"goal": "echo hello"}')
    fields = {"Workflow ID": "from-the-ui", "Task Queue": "toolcrib-tasks", "Workflow Type": "ScheduledTask"}
    for label, text in fields.items():
        await ui.page.get_by_label(label).fill(text)
    await expect(ui.page.get_by_text("Task Queue is Active")).to_be_visible()  # it moves the button away
    await ui.page.get_by_role("button", name="Start Workflow").click()
    task = shown.lab.crib.task("from-the-ui")
    await eventually(lambda: exists(task), bool)
    assert "hello" in (await task.result())["output"]


async def exists(task: TaskHandle) -> bool:
    """Return whether there is such a task."""
    try:
        await task.status()
    except UnknownTask:
        return False
    return True

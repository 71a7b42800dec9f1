"""Groups of tasks. Rows S2-04, S2-12, K-21."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from support.lab import Lab, eventually, until, until_status
from support.runners import CONTROLLED, controlled
from toolcrib.activities.context import LeaseContext
from toolcrib.client import Group, GroupView, InvalidRequest

G = Group("import", "Import of letters")


async def test_s2_04_a_task_may_belong_to_a_group(lab: Lab) -> None:
    """Id and name are in its view, and only if they were set; the id alone will do."""
    crib = await lab.pool()
    grouped, plain = await crib.submit("a", group=G), await crib.submit("b")
    view, other = (await grouped.status()).model_dump(), (await plain.status()).model_dump()
    assert (view["group_id"], view["group_name"]) == ("import", "Import of letters")
    assert not {"group_id", "group_name"} & set(other)
    by_id = (await (await crib.submit("c", group="import")).status()).model_dump()
    assert (by_id["group_id"], "group_name" in by_id) == ("import", False)


async def test_k21_a_group_shows_counts_and_mean_progress(lab: Lab) -> None:
    """Of tasks that wait, run and have ended, those that run elsewhere among them."""
    crib = await lab.pool(max_concurrent=1)
    async with lab.host(goal=CONTROLLED):
        done = await crib.submit("group-1", group=G)
        await until_status(done, "dispatched")
        controlled.finish("group-1")
        await done.result()
        running = await crib.submit("group-2", group=G)
        await until_status(running, "dispatched")
        calls = await eventually(_calls_of("group-2"), bool)
        calls[0].progress(0.5)
        await until(running, lambda view: view.progress == 0.5)
        await crib.submit("group-3", group=G)
        async with crib.external("group-4", group=G) as external:
            await external.progress(0.3)
            await until(external, lambda view: view.progress == 0.3)
            shown = await _settled(lab, {"pending": 1, "running": 2, "completed": 1})
            assert shown.name == "Import of letters"
            assert shown.progress == pytest.approx((1 + 0.5 + 0 + 0.3) / 4)
        cancelled = await crib.group("import").cancel()
        assert len(cancelled) == 2
        end = await crib.group("import").wait()
    assert end.counts == {"completed": 2, "cancelled": 2}


async def test_a_group_is_waited_for(lab: Lab) -> None:
    """Until the last of its tasks has ended; a group without tasks has ended."""
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED):
        tasks = [await crib.submit(f"waited-{n}", group=G) for n in range(2)]
        await _settled(lab, {"running": 1, "pending": 1})
        waiting = asyncio.create_task(crib.group("import").wait())
        for n, task in enumerate(tasks):
            await until_status(task, "dispatched")
            assert not waiting.done()
            controlled.finish(f"waited-{n}")
        assert (await waiting).counts == {"completed": 2}
    assert (await crib.group("nobody").show()) == GroupView(id="nobody", counts={}, progress=None)


async def test_a_group_name_needs_a_group(lab: Lab) -> None:
    """Refused with the field's name."""
    crib = await lab.pool()
    with pytest.raises(InvalidRequest, match=r"^group_id: "):
        await crib.submit("true", group=Group(""))


def _calls_of(goal: str) -> Callable[[], Awaitable[list[LeaseContext]]]:
    async def found() -> list[LeaseContext]:
        return [context for work, context in controlled.calls if work == goal]

    return found


async def _settled(lab: Lab, counts: dict[str, int]) -> GroupView:
    """Return the group when all of its tasks are in the server's lists."""
    return await eventually(lab.crib.group("import").show, lambda view: dict(view.counts) == counts)

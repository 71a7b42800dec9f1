"""Watching tasks: live, many at once, without a trace, and through restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from temporalio.client import Client

from support.lab import PATIENCE, Lab, slot, until_pool, until_status
from support.processes import host_file, toolcrib
from support.runners import CONTROLLED, controlled
from support.servers import connect
from toolcrib.client import TaskView, Toolcrib, UnknownTask, reading
from toolcrib.client.watching import Watch
from toolcrib.worker.embedded import EmbeddedServer


class Screen:
    """Collects what a watch yields, and lets a test wait for it."""

    def __init__(self) -> None:
        self.views: list[TaskView] = []
        self.silences = 0
        self.silent = asyncio.Event()
        self._changed = asyncio.Condition()

    def fall_silent(self) -> None:
        """Note that there was no answer."""
        self.silences += 1
        self.silent.set()

    async def show(self, watch: AsyncGenerator[TaskView]) -> None:
        """Collect until the watch ends."""
        async with aclosing(watch) as views:
            async for view in views:
                self.views.append(view)
                async with self._changed:
                    self._changed.notify_all()

    async def until(self, fits: Callable[[TaskView], bool]) -> None:
        """Wait for a view that fits."""
        async with asyncio.timeout(4 * PATIENCE), self._changed:
            await self._changed.wait_for(lambda: any(map(fits, self.views)))


@asynccontextmanager
async def watched(crib: Toolcrib, *task_ids: str) -> AsyncIterator[Screen]:
    """Watch tasks while the context is open, and then until they have ended."""
    screen = Screen()
    watching = asyncio.create_task(screen.show(crib.watch(task_ids, on_silence=screen.fall_silent)))
    try:
        yield screen
        await asyncio.wait_for(watching, 4 * PATIENCE)
    finally:
        watching.cancel()


async def length(client: Client, task_id: str) -> int:
    """Return how many events a task's history has."""
    return (await client.get_workflow_handle(task_id).describe()).history_length


async def test_every_change_is_seen_until_the_end(lab: Lab) -> None:
    """Why it waits, where it runs, how far it is, and how it ended; and nothing twice in a row."""
    crib = await lab.pool()
    task = await crib.submit("watch-1")
    async with watched(crib, task.id) as screen:
        await screen.until(lambda view: view.pending_reason is not None)
        async with lab.host(goal=CONTROLLED):
            await screen.until(lambda view: view.status == "dispatched" and view.device_id == "slot-1")
            (await controlled.context("watch-1")).progress(0.5, "half")
            await screen.until(lambda view: (view.progress, view.message) == (0.5, "half"))
            controlled.finish("watch-1", "result")
            await screen.until(lambda view: view.status == "done")
    assert screen.views[-1].result == "result"
    assert all(earlier != later for earlier, later in pairwise(screen.views))
    assert screen.silences == 0


async def test_many_tasks_are_watched_at_once_and_none_has_an_event_more(lab: Lab) -> None:
    """Of a hundred tasks one changes again and again, which is seen; the others' histories stay as they were."""
    tasks = await asyncio.gather(*(lab.crib.external(f"task {n}").start() for n in range(100)))
    async with watched(lab.crib, *(task.id for task in tasks)) as screen:
        for task in tasks:
            await screen.until(lambda view, task=task: view.id == task.id)  # type: ignore[misc]
        before = [await length(lab.client, task.id) for task in tasks[1:]]
        for percent in (10, 20, 30):
            await tasks[0].progress(percent / 100)
            await screen.until(lambda view, percent=percent: view.progress == percent / 100)  # type: ignore[misc]
        assert [await length(lab.client, task.id) for task in tasks[1:]] == before
        await asyncio.gather(*(task.complete() for task in tasks))
    assert sum(view.status == "done" for view in screen.views) == 100


async def test_an_unknown_task_ends_the_watch(lab: Lab) -> None:
    """By name, though others could be watched."""
    task = await lab.crib.external("known").start()
    with pytest.raises(UnknownTask, match="task-nope"):
        await Screen().show(lab.crib.watch([task.id, "task-nope"]))
    await task.complete()


@pytest.mark.parametrize(("tasks", "interval"), [(1, 0.25), (20, 0.25), (80, 1.0), (200, 2.5)])
async def test_the_more_tasks_the_fewer_looks_at_each(tasks: int, interval: float, client: Client) -> None:
    """Four a second up to twenty tasks, and never more than eighty a second in all."""
    watch = Watch(client)
    watch.watched = tasks
    assert watch.interval == interval


@pytest.mark.parametrize("answer_within", [0.5, 10.0])
async def test_it_goes_on_when_the_schedulers_are_away(
    answer_within: float, server: EmbeddedServer, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says once that it waits, and shows what has happened meanwhile when one is back.

    That may be after many questions without an answer, or after one.
    """
    monkeypatch.setattr(reading, "ANSWER_WITHIN", answer_within)
    monkeypatch.setattr(reading, "QUERY_TIMEOUT", timedelta(seconds=answer_within))
    client = await connect(server.address, namespace)
    crib = Toolcrib(client)
    file = host_file(tmp_path, "h", [slot("a")], pool="default")
    goal = f"until [ -e '{tmp_path}/go' ]; do sleep 0.1; done; echo ended"
    async with (
        toolcrib(client, tmp_path, "worker", "--role", "host", "--config", str(file)),
        toolcrib(client, tmp_path, "worker", "--role", "scheduler") as scheduler,
    ):
        await until_pool(crib, lambda pool: len(pool.devices) == 1)
        task = await crib.submit(goal, max_attempts=5)
        await until_status(task, "dispatched")
        async with watched(crib, task.id) as screen:
            await screen.until(lambda view: view.status == "dispatched")
            scheduler.kill()
            await scheduler.wait()
            (tmp_path / "go").touch()
            await asyncio.wait_for(screen.silent.wait(), PATIENCE)
            async with toolcrib(client, tmp_path, "worker", "--role", "scheduler"):
                await screen.until(lambda view: view.status == "done")
    assert screen.views[-1].result["output"] == "ended\n"
    assert screen.silences == 1


async def test_it_goes_on_when_the_server_is_killed_and_started_again(
    server_with_file: Callable[..., EmbeddedServer], tmp_path: Path
) -> None:
    """A watch outlives the server that it watches, if that keeps its tasks."""
    async with AsyncExitStack() as parts:
        server = server_with_file()
        running = await parts.enter_async_context(AsyncExitStack())
        await running.enter_async_context(server)
        client = await connect(server.address)
        crib = Toolcrib(client)
        await parts.enter_async_context(toolcrib(client, tmp_path, "worker", "--role", "scheduler"))
        await until_pool(crib, lambda pool: True)
        tasks = [await crib.external(f"task {n}").start() for n in range(3)]
        async with watched(crib, *(task.id for task in tasks)) as screen:
            await screen.until(lambda view: view.name == "task 2")
            await server.kill()
            await running.aclose()
            await asyncio.wait_for(screen.silent.wait(), PATIENCE)
            async with server_with_file(port=server.port):
                for task in tasks:
                    await task.complete()
                for task in tasks:
                    await screen.until(lambda view, task=task: view.id == task.id and view.ended)  # type: ignore[misc]
    assert {view.name for view in screen.views if view.ended} == {"task 0", "task 1", "task 2"}
    assert screen.silences == 1

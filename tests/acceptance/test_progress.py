"""Progress, from the work to who reads it. Rows S2-03, S2-10, S2-14, S2-15, S2-32 to S2-34, K-18, K-19."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from support.lab import Lab, eventually, slot, until, until_begun, until_status
from support.runners import CONTROLLED, controlled
from toolcrib.activities.context import LeaseContext, RunFailed
from toolcrib.client import InvalidRequest, TaskFailed, TaskHandle, TaskView, Toolcrib
from toolcrib.scheduling.messages import Progress
from toolcrib.worker.host_file import load_host_file
from toolcrib.workflows.contract import TASK_PROGRESS

NEVER = 3_600.0
"""A throttle that lets one report through within a test, and the last one at the end."""


async def running(crib: Toolcrib, goal: str) -> tuple[TaskHandle, LeaseContext]:
    """Submit a goal for the runner `controlled`, and return its task and context as soon as it runs."""
    task = await crib.submit(goal)
    await until_status(task, "dispatched")
    return task, await controlled.context(goal)


async def events(client: Client, task_id: str) -> list[float]:
    """Return when the progress of a task came to its history, in unix seconds."""
    found = [
        event
        async for event in client.get_workflow_handle(task_id).fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED
    ]
    signals = [
        event for event in found if event.workflow_execution_signaled_event_attributes.signal_name == TASK_PROGRESS
    ]
    return [event.event_time.ToNanoseconds() / 1e9 for event in signals]


def shows(value: float) -> Any:
    """Return whether a view has this progress."""

    def fits(view: TaskView) -> bool:
        return view.progress == value

    return fits


def at_least_apart(times: Sequence[float], seconds: float) -> bool:
    """Return whether there is so much time between any two events; clocks may step by a hundredth."""
    return all(later - earlier > seconds - 0.01 for earlier, later in pairwise(times))


async def test_s2_32_a_report_sets_value_and_message(lab: Lab) -> None:
    """Both are read as they were reported; the next report takes the place of both, and may go back."""
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED):
        task, context = await running(crib, "s2-32")
        context.progress(0.5, "half")
        assert (await until(task, shows(0.5))).message == "half"
        context.progress(0.25)
        assert (await until(task, shows(0.25))).message is None
        controlled.finish("s2-32")
        await task.result()


async def test_s2_10_a_runtime_reports_progress_completion_and_failure(lab: Lab) -> None:
    """Value and message, a result, and a failure's message all arrive at the task."""
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED, devices=[slot("a"), slot("b")]):
        good, context = await running(crib, "s2-10-good")
        bad, _ = await running(crib, "s2-10-bad")
        context.progress(0.5, "half")
        await until(good, shows(0.5))
        controlled.finish("s2-10-good", {"files": 3})
        controlled.fail("s2-10-bad", RunFailed("2 tests failed"))
        assert await good.result() == {"files": 3}
        with pytest.raises(TaskFailed, match="2 tests failed"):
            await bad.result()


@pytest.mark.parametrize("value", [1.01, -0.01, float("nan"), float("inf"), "0.5", True])
async def test_s2_03_bad_values_are_refused_with_the_reason(value: Any, lab: Lab) -> None:
    """Where they are reported, by name; the task keeps what it had, and runs on."""
    crib = await lab.pool()
    goal = f"s2-03 {value!r}"
    async with lab.host(goal=CONTROLLED):
        task, context = await running(crib, goal)
        with pytest.raises(InvalidRequest, match="is not a number from 0 to 1"):
            context.progress(value)
        with pytest.raises(InvalidRequest, match="message: 501 characters"):
            context.progress(0.5, "x" * 501)
        context.progress(0.5)
        await until(task, shows(0.5))
        controlled.finish(goal)
        await task.result()


async def test_s2_03_a_signal_out_of_range_is_ignored(lab: Lab) -> None:
    """Also if it was not toolcrib that sent it: progress stays absent, or what it was."""
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED):
        task, context = await running(crib, "s2-03-signal")
        workflow = lab.client.get_workflow_handle(task.id)
        for value in (1.5, -1.0, 1e300):
            await workflow.signal(TASK_PROGRESS, Progress(lease_id=context.lease.id, value=value))
        assert (await task.status()).progress is None
        controlled.finish("s2-03-signal")
        await task.result()


async def test_k19_an_older_lease_has_no_say(lab: Lab) -> None:
    """Progress begins anew with the next attempt, and what an older one still reports is ignored."""
    crib = await lab.pool(lease_ttl=3)
    async with lab.host(goal=CONTROLLED):
        task, first = await running(crib, "k19")
        first.progress(0.9, "old")
        await until(task, shows(0.9))
    async with lab.host(goal=CONTROLLED):
        view = await until(task, lambda view: view.status == "dispatched" and view.attempt == 2)
        assert view.progress is None
        late = Progress(lease_id=first.lease.id, value=0.95, message="late")
        await lab.client.get_workflow_handle(task.id).signal(TASK_PROGRESS, late)
        assert (await task.status()).progress is None
        second = await controlled.context("k19")
        second.progress(0.1, "new")
        assert (await until(task, shows(0.1))).message == "new"
        controlled.finish("k19")
        await task.result()


async def test_s2_14_the_throttle_is_a_quarter_of_a_second_by_default(lab: Lab, tmp_path: Path) -> None:
    """In a host file that does not name it, and between the events of a task."""
    file = tmp_path / "host.yaml"
    file.write_text("host: {id: h, devices: [{id: a, driver: local}]}")
    assert load_host_file(file).progress_throttle == 0.25
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED):
        task, context = await running(crib, "s2-14")
        assert at_least_apart(await _busy_reports(lab, task, context, 4), 0.25)
        controlled.finish("s2-14")
        await task.result()


async def test_s2_15_the_throttle_can_be_set(lab: Lab, tmp_path: Path) -> None:
    """In the host file; then there is that much time between two events."""
    file = tmp_path / "host.yaml"
    file.write_text("host: {id: h, devices: [{id: a, driver: local}], progress_throttle: 1s}")
    throttle = load_host_file(file).progress_throttle
    assert throttle == 1.0
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED, throttle=throttle):
        task, context = await running(crib, "s2-15")
        assert at_least_apart(await _busy_reports(lab, task, context, 3), 1.0)
        controlled.finish("s2-15")
        await task.result()


async def _busy_reports(lab: Lab, task: TaskHandle, context: LeaseContext, number: int) -> list[float]:
    """Report all the time until there are so many events of it."""
    reports = 0

    async def report() -> list[float]:
        nonlocal reports
        reports += 1
        context.progress(1 / reports)
        return await events(lab.client, task.id)

    return await eventually(report, lambda found: len(found) >= number)


async def test_s2_33_two_hundred_reports_in_a_second_are_five_events(lab: Lab) -> None:
    """On each of twenty tasks at once: the last value is right, and the pool and another task are unharmed."""
    goals = [f"s2-33-{n}" for n in range(20)]
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED, devices=[slot(f"slot-{n}") for n in range(21)]):
        started = await asyncio.gather(*(running(crib, goal) for goal in goals))
        span = await _reports([context for _, context in started], 200, 0.95)
        other = await crib.submit("s2-33-other")
        controlled.finish("s2-33-other", "unharmed")
        assert await other.result() == "unharmed"
        assert (await crib.pool().show()).leased == 20
        for task, _ in started:
            view = await until(task, shows(1.0))
            assert (view.status, view.message) == ("dispatched", "report 200 of 200")
            times = await events(lab.client, task.id)
            assert 2 <= len(times) <= 2 + int(span / 0.25)  # five, if the reports took no more than a second
            assert at_least_apart(times, 0.25)
        for goal in goals:
            controlled.finish(goal)
        await asyncio.gather(*(task.result() for task, _ in started))


async def _reports(contexts: Sequence[LeaseContext], number: int, seconds: float) -> float:
    """Report so often in so many seconds, if the machine can do it; return how long it took."""
    loop = asyncio.get_running_loop()
    begin = loop.time()
    for n in range(1, number + 1):
        for context in contexts:
            context.progress(n / number, f"report {n} of {number}")
        await asyncio.sleep(max(0.0, begin + seconds * n / number - loop.time()))
    return loop.time() - begin


async def test_s2_34_the_throttle_is_per_task(lab: Lab) -> None:
    """While the reports of one task are held back, the first of another goes at once."""
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED, devices=[slot("a"), slot("b")], throttle=NEVER):
        (first, ours), (second, theirs) = [await running(crib, goal) for goal in ("s2-34-a", "s2-34-b")]
        ours.progress(0.1)
        await until(first, shows(0.1))
        ours.progress(0.2)
        theirs.progress(0.5)
        await until(second, shows(0.5))
        assert (await first.status()).progress == 0.1
        controlled.finish("s2-34-a")
        controlled.finish("s2-34-b")
        await asyncio.gather(first.result(), second.result())


async def test_k18_the_end_is_not_throttled_and_the_last_value_comes_before_it(lab: Lab) -> None:
    """A task that fails shows the last progress that was reported, though it was held back until then."""
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED, throttle=NEVER):
        task, context = await running(crib, "k18")
        context.progress(0.1)
        await until(task, shows(0.1))
        for percent in range(11, 80):
            context.progress(percent / 100)
        controlled.fail("k18", RunFailed("broken"))
        view = await until_status(task, "failed")
        assert (view.progress, view.message) == (0.79, "broken")
        assert len(await events(lab.client, task.id)) == 2


async def test_the_newest_report_is_in_the_heartbeat(lab: Lab) -> None:
    """Who looks at the task's activity sees it, also what the throttle holds back."""
    crib = await lab.pool(lease_ttl=3)
    async with lab.host(goal=CONTROLLED, throttle=NEVER):
        task, context = await running(crib, "heartbeat")
        await until_begun(lab.client, task.id)
        context.progress(0.1)
        context.progress(0.2, "held back")

        async def details() -> list[Any]:
            found = await lab.client.get_workflow_handle(task.id).describe()
            (pending,) = found.raw_description.pending_activities
            return await lab.client.data_converter.decode(pending.heartbeat_details.payloads)

        newest = {"lease_id": context.lease.id, "value": 0.2, "message": "held back"}
        await eventually(details, lambda found: found == [newest])
        controlled.finish("heartbeat")
        await task.result()


async def test_a_script_says_how_far_it_is(lab: Lab, tmp_path: Path) -> None:
    """By lines that are not kept; percentages that it redraws count once it has said so."""
    crib = await lab.pool()
    script = f"""
    cd {tmp_path}
    echo begun; echo "::toolcrib progress 25% copying a file"; until [ -e go ]; do sleep 0.05; done
    echo "::toolcrib percent"; printf '  50%%\\r  75%%\\r'; until [ -e end ]; do sleep 0.05; done
    """
    async with lab.host():
        task = await crib.submit(script)
        view = await until(task, shows(0.25))
        assert view.message == "copying a file"
        (tmp_path / "go").touch()
        await until(task, shows(0.75))
        (tmp_path / "end").touch()
        assert (await task.result())["output"] == "begun\n  50%\r  75%\r"
        assert (await task.status()).progress == 1.0

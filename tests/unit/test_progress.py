"""Progress is throttled where it arises, and its last value always arrives."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise

import pytest
from temporalio.service import RPCError, RPCStatusCode

from support.lab import eventually
from support.simulated import SimulatedLoop
from toolcrib.activities.progress import ProgressReporter, pause_after
from toolcrib.client import InvalidRequest
from toolcrib.scheduling.messages import Progress

DAY = 86_400.0
QUICK, SLOW = 0.02, 3_600.0
"""Throttles: a short one, and one that does not end within a test."""


class Far:
    """Where reports go; it refuses the first ones with `errors`."""

    def __init__(self, *errors: RPCStatusCode, throttle: float = QUICK) -> None:
        self.values: list[float] = []
        self.times: list[float] = []
        self.tries = 0
        self.reporter = ProgressReporter("task-1.1.7", self._send, throttle=throttle)
        self._errors = list(errors)

    async def until(self, *values: float) -> None:
        """Wait until just these values have arrived."""

        async def arrived() -> list[float]:
            return self.values

        await eventually(arrived, lambda found: found == list(values))

    async def _send(self, report: Progress) -> None:
        assert report.lease_id == "task-1.1.7"
        self.tries += 1
        if self._errors:
            raise RPCError("refused", self._errors.pop(0), b"")
        self.values.append(report.value)
        self.times.append(time.monotonic())


async def test_the_first_report_goes_at_once_and_the_last_with_the_end() -> None:
    """What comes soon after an event is held back; of that, the end of the work sends the last one."""
    far = Far(throttle=SLOW)
    far.reporter.report(0.1)
    await far.until(0.1)
    for percent in range(11, 90):
        far.reporter.report(percent / 100)
        await asyncio.sleep(0)
    assert far.values == [0.1]
    await far.reporter.flush()
    assert far.values == [0.1, 0.89]


async def test_what_is_reported_after_a_flush_is_held_back_as_before() -> None:
    """An external task is flushed by every command and call, and goes on."""
    far = Far(throttle=SLOW)
    far.reporter.report(0.1)
    await far.reporter.flush()
    for value in (0.2, 0.3, 0.4):
        far.reporter.report(value)
        for _ in range(10):
            await asyncio.sleep(0)
    assert far.values == [0.1, 0.2]
    await far.reporter.flush()
    assert far.values == [0.1, 0.2, 0.4]


async def test_after_a_pause_the_newest_value_goes_by_itself() -> None:
    """A value that was held back is sent when the pause is over, though nothing else happens."""
    far = Far()
    for value in (0.1, 0.2):
        far.reporter.report(value)
        await asyncio.sleep(0)
    far.reporter.report(0.3)
    await far.until(0.1, 0.3)


async def test_between_two_events_there_is_a_pause() -> None:
    """However often there are reports, there are never two events within the throttle."""
    far = Far()
    count = 0
    while len(far.values) < 5:
        count += 1
        far.reporter.report(1 - 1 / count)
        await asyncio.sleep(0)
    assert all(later - earlier >= 0.0199 for earlier, later in pairwise(far.times))
    assert far.values == sorted(far.values)
    await far.reporter.flush()


async def test_an_unchanged_value_is_no_event() -> None:
    """The same value and message again and again is one event; another message is another."""
    far = Far()
    for _ in range(3):
        far.reporter.report(0.5, "half")
        await far.until(0.5)
    await far.reporter.flush()
    assert far.values == [0.5]
    far.reporter.report(0.5, "a little more than half")
    await far.reporter.flush()
    assert far.values == [0.5, 0.5]


async def test_without_reports_there_is_nothing_to_flush() -> None:
    """The end of work that never reported sends nothing."""
    far = Far()
    await far.reporter.flush()
    assert far.tries == 0


async def test_a_value_that_did_not_arrive_is_sent_again() -> None:
    """A server that is away for a moment does not cost the last value."""
    far = Far(RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED)
    far.reporter.report(0.5)
    await far.until(0.5)
    assert far.tries == 3


async def test_a_newer_value_takes_the_place_of_one_that_did_not_arrive() -> None:
    """What is sent again is not older than what was reported meanwhile."""
    far = Far(RPCStatusCode.UNAVAILABLE)
    far.reporter.report(0.5)
    await asyncio.sleep(0)
    far.reporter.report(0.6)
    await far.until(0.6)
    assert far.tries == 2


async def test_a_task_that_has_gone_is_told_once() -> None:
    """Where there is nobody to be told, it is not tried again."""
    far = Far(RPCStatusCode.NOT_FOUND)
    far.reporter.report(0.5)
    await far.reporter.flush()
    assert (far.tries, far.values) == (1, [])


async def test_the_end_does_not_wait_for_a_server_that_is_away() -> None:
    """With the end of the work, the last value is tried once more, and no more."""
    far = Far(*[RPCStatusCode.UNAVAILABLE] * 9, throttle=SLOW)
    far.reporter.report(0.5)
    await asyncio.sleep(0)
    await far.reporter.flush()
    assert (far.tries, far.values) == (2, [])


@pytest.mark.parametrize(
    ("value", "message"),
    [(-0.1, None), (1.1, None), (float("nan"), None), (True, None), ("0.5", None), (0.5, "x" * 501), (0.5, "\ud800")],
)
async def test_a_malformed_report_is_refused_where_it_is_made(value: float, message: str | None) -> None:
    """A value outside 0 to 1, and a message that is too long or cannot be sent, is the reporter's mistake."""
    far = Far()
    with pytest.raises(InvalidRequest):
        far.reporter.report(value, message)
    await far.reporter.flush()
    assert far.tries == 0


@pytest.mark.parametrize(("days", "every", "most"), [(1, 1.0, 500), (30, 60.0, 700)])
def test_long_work_makes_few_events(days: int, every: float, most: int) -> None:
    """Of work that reports all the time, the history has a few hundred events a day, never older than 2 % of its run.

    Simulated: the reporter's own loop, on a clock that jumps to what is due next.
    """
    values: list[tuple[float, float]] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()

        async def send(report: Progress) -> None:
            values.append((loop.time(), report.value))

        reporter = ProgressReporter("task-1.1.7", send)
        reports = int(days * DAY / every)
        for n in range(1, reports + 1):
            reporter.report(n / reports)
            await asyncio.sleep(every)
        await reporter.flush()

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(work())
    assert len(values) <= most
    assert values[-1][1] == 1.0
    assert all(now / (days * DAY) - value <= 0.02 for now, value in values[1:])


@pytest.mark.parametrize("throttle", [0.001, 60.0])
def test_any_throttle_keeps_the_history_short(throttle: float) -> None:
    """What a host may set bounds how often, and never makes a day of work long to read."""
    now, events = 0.0, 0
    while now < DAY:
        now, events = now + pause_after(now, throttle), events + 1
    assert events <= 1_000


def test_what_is_shown_is_fresh() -> None:
    """At first four events a second are possible; later what is shown is never older than 2 % of the run."""
    assert pause_after(10.0) == 0.25
    assert pause_after(3_600.0) == 72.0

"""Many callers share one call in flight."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from toolcrib.activities.batching import MAX_BATCH, Batcher


class Line:
    """The far end: takes one call at a time, and answers when the test says so."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.batcher = Batcher(self._send)
        self._answers: asyncio.Queue[Sequence[int] | Exception | None] = asyncio.Queue()
        self._in_flight = 0

    def submit(self, *items: int) -> list[asyncio.Task[int]]:
        """Have a caller for each item, in this order."""
        return [asyncio.create_task(self._call(item)) for item in items]

    def answer(self, answer: Sequence[int] | Exception | None = None) -> None:
        """Answer the call in flight, or the next one: with ten times each item unless something else is given."""
        self._answers.put_nowait(answer)

    async def until_called(self, times: int) -> None:
        """Wait until there were so many calls."""
        async with asyncio.timeout(5):
            while len(self.calls) < times:
                await asyncio.sleep(0)

    async def _call(self, item: int) -> int:
        return await self.batcher(item)

    async def _send(self, items: list[int]) -> Sequence[int]:
        self.calls.append(items)
        self._in_flight += 1
        assert self._in_flight == 1, "two calls in flight"
        try:
            answer = await self._answers.get()
        finally:
            self._in_flight -= 1
        if isinstance(answer, Exception):
            raise answer
        return [10 * item for item in items] if answer is None else answer


@pytest.fixture
async def line() -> Line:
    """A line on which nothing was sent yet."""
    return Line()


async def test_what_arrives_meanwhile_goes_in_the_next_call(line: Line) -> None:
    """The first item goes at once and alone; those that come while it is under way go together, in their order."""
    first = line.submit(1)
    await line.until_called(1)
    later = line.submit(2, 3, 4)
    line.answer()
    line.answer()
    assert await asyncio.gather(*first, *later) == [10, 20, 30, 40]
    assert line.calls == [[1], [2, 3, 4]]


async def test_a_batch_has_a_limit(line: Line) -> None:
    """What is beyond a hundred items waits for another call, and the order stays."""
    tasks = line.submit(*range(2 * MAX_BATCH + 1))
    for _ in range(3):
        line.answer()
    assert await asyncio.gather(*tasks) == [10 * item for item in range(2 * MAX_BATCH + 1)]
    assert [len(call) for call in line.calls] == [MAX_BATCH, MAX_BATCH, 1]
    assert [item for call in line.calls for item in call] == list(range(2 * MAX_BATCH + 1))


async def test_after_a_pause_it_starts_again(line: Line) -> None:
    """A batcher that had nothing to do sends the next item at once."""
    for item in (1, 2):
        line.answer()
        assert await line.batcher(item) == 10 * item
    assert line.calls == [[1], [2]]


async def test_a_cancelled_caller_harms_no_other(line: Line) -> None:
    """A caller that is cancelled while its item is under way leaves the call alone; the others get their answers."""
    tasks = line.submit(1, 2, 3)
    await line.until_called(1)
    tasks[0].cancel()
    line.answer()
    assert await asyncio.gather(*tasks[1:]) == [20, 30]
    assert tasks[0].cancelled()
    assert line.calls == [[1, 2, 3]]


async def test_what_nobody_waits_for_is_not_sent(line: Line) -> None:
    """The item of a caller that was cancelled before its call began is left out."""
    first = line.submit(1)
    await line.until_called(1)
    later = line.submit(2, 3)
    await asyncio.sleep(0)
    later[0].cancel()
    line.answer()
    line.answer()
    assert await asyncio.gather(*first, later[1]) == [10, 30]
    assert line.calls == [[1], [3]]


async def test_an_error_reaches_every_caller_of_its_batch_only(line: Line) -> None:
    """All whose items were in the call that failed get its error; the next call is made as ever."""
    failing = line.submit(1, 2)
    await line.until_called(1)
    later = line.submit(3)
    line.answer(ConnectionError("the line is down"))
    line.answer()
    errors = await asyncio.gather(*failing, return_exceptions=True)
    assert [type(error) for error in errors] == [ConnectionError, ConnectionError]
    assert await later[0] == 30


@pytest.mark.parametrize("answers", [[], [10], [10, 20, 30]])
async def test_a_wrong_number_of_answers_is_an_error(line: Line, answers: list[int]) -> None:
    """If it cannot be told which answer is whose, every caller gets an error, and nobody waits for ever."""
    tasks = line.submit(1, 2)
    line.answer(answers)
    async with asyncio.timeout(5):
        errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(error) for error in errors] == [ValueError, ValueError]


async def test_when_the_sender_is_cancelled_nobody_is_left_waiting(line: Line) -> None:
    """At the end of a process both those in flight and those in line are cancelled."""
    before = asyncio.all_tasks()
    in_flight = line.submit(1)
    await line.until_called(1)
    in_line = line.submit(2)
    await asyncio.sleep(0)
    (sender,) = (task for task in asyncio.all_tasks() - before if "_send_all" in repr(task.get_coro()))
    sender.cancel()
    async with asyncio.timeout(5):
        ends = await asyncio.gather(*in_flight, *in_line, return_exceptions=True)
    assert [type(end) for end in ends] == [asyncio.CancelledError, asyncio.CancelledError]
    line.answer()
    assert await line.batcher(3) == 30

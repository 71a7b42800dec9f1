"""What a watch makes of the answers that it gets."""

from __future__ import annotations

import asyncio

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from support.fake_crib import task_view
from support.simulated import SimulatedLoop
from toolcrib.client import TaskView, UnknownTask
from toolcrib.client.watching import GONE_FOR, SILENCE, Look, Watch

AWAY = RPCError("no answer", RPCStatusCode.UNAVAILABLE, b"")
GONE = UnknownTask.named("task-1")
TAKES = 0.01
"""Seconds for a look."""


class Scripted(Watch):
    """A watch of one task whose looks end as the test says, the last one again and again."""

    def __init__(self, *answers: Exception | TaskView) -> None:
        super().__init__(asyncio.run(Client.connect("127.0.0.1:1", lazy=True)), self._note)
        self.silences = 0
        self.took = 0.0
        self._answers = list(answers)

    def to_the_end(self) -> list[str]:
        """Watch, in simulated time, and return the statuses that were seen."""
        seen: list[str] = []

        async def watch() -> None:
            try:
                seen.extend([view.status async for view in self.changes("task-1")])
            finally:
                self.took = asyncio.get_running_loop().time()

        with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
            runner.run(watch())
        return seen

    def _note(self) -> None:
        self.silences += 1

    async def _read(self, *_: object) -> Look:
        await asyncio.sleep(TAKES)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return Look(None, answer)


def test_a_task_that_was_deleted_is_no_silence() -> None:
    """The server answers that it is not there: that is believed after a while, and nobody is said to be away."""
    watch = Scripted(task_view(status="dispatched"), GONE)
    with pytest.raises(UnknownTask):
        watch.to_the_end()
    assert watch.silences == 0
    assert watch.took > GONE_FOR


def test_a_server_that_does_not_answer_is_told_of_once() -> None:
    """After some seconds; a server that then starts, and knows nothing at first, is believed when it does."""
    away = [AWAY] * int(2 * SILENCE / TAKES)
    watch = Scripted(task_view(status="dispatched"), *away, GONE, GONE, task_view(status="done"))
    assert watch.to_the_end() == ["dispatched", "done"]
    assert watch.silences == 1

"""A pool may give a host's devices away before the host has heard that it is registered."""

from __future__ import annotations

import asyncio

from support.lab import Lab, until_begun, until_status
from support.lost_answers import LostAnswers, losing


async def test_a_lease_that_is_faster_than_the_answer_to_the_registration_is_served(lab: Lab) -> None:
    """It waits for the incarnation that the worker is to claim it with, and is done at the first attempt."""
    crib, answers = await lab.pool(), LostAnswers(late="register")
    task = await crib.submit("true")
    hosting = Lab(losing(lab.client, answers), lab.crib, lab.folder).host()
    entering = asyncio.create_task(hosting.__aenter__())
    await until_begun(lab.client, task.id)
    answers.may_go.set()
    await entering
    view = await until_status(task, "done")
    await hosting.__aexit__(None, None, None)
    assert [attempt.outcome for attempt in view.attempts] == ["done"]

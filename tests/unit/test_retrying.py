"""Calls are made again while what hinders them may pass, and for a bounded time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.activities.pool_link import PoolLinks
from toolcrib.activities.retrying import is_unanswered, put_again, retried
from toolcrib.client.patience import patiently
from toolcrib.scheduling.errors import UnknownPool


class Passing(Exception):
    """What hinders a call may pass."""


def failing(*errors: BaseException) -> tuple[list[float], Callable[[], Awaitable[str]]]:
    """Return a call that raises these errors one after the other and then succeeds, and the times of its calls."""
    calls: list[float] = []

    async def call() -> str:
        calls.append(time.monotonic())
        if len(calls) <= len(errors):
            raise errors[len(calls) - 1]
        return "done"

    return calls, call


def may_pass(error: BaseException) -> bool:
    """Return whether it is worth another call."""
    return isinstance(error, Passing)


def rpc(status: RPCStatusCode) -> RPCError:
    """Return a refusal of Temporal's."""
    return RPCError("refused", status, b"")


def refused(error_type: str) -> WorkflowUpdateFailedError:
    """Return the failure of an update."""
    return WorkflowUpdateFailedError(ApplicationError("refused", type=error_type))


async def test_it_is_made_again_until_it_succeeds() -> None:
    """What may pass is tried again, and the answer is that of the first call that succeeds."""
    calls, call = failing(Passing(), Passing(), Passing())
    assert await retried(call, may_pass, patience=10.0, longest_pause=0.01) == "done"
    assert len(calls) == 4


async def test_what_does_not_pass_is_raised_at_once() -> None:
    """An error of another kind ends it with the first call."""
    calls, call = failing(ValueError("for good"), Passing())
    with pytest.raises(ValueError, match="for good"):
        await retried(call, may_pass, patience=10.0, longest_pause=0.01)
    assert len(calls) == 1


async def test_patience_ends() -> None:
    """When there is no time for another call, the last error is raised."""
    errors = [Passing(str(number)) for number in range(1_000)]
    calls, call = failing(*errors)
    with pytest.raises(Passing) as caught:
        await retried(call, may_pass, patience=0.3, longest_pause=0.02)
    assert caught.value is errors[len(calls) - 1]


async def test_no_call_begins_when_patience_is_over() -> None:
    """The pause before a call counts as well: who has no patience calls once."""
    calls, call = failing(Passing())
    with pytest.raises(Passing):
        await retried(call, may_pass, patience=0.0, longest_pause=0.001)
    assert len(calls) == 1


async def test_without_a_bound_it_goes_on() -> None:
    """Patience may be endless: then only success, another error or a cancellation ends it."""
    calls, call = failing(*[Passing()] * 200)
    assert await retried(call, may_pass, patience=None, longest_pause=0.001) == "done"
    assert len(calls) == 201


async def test_it_can_be_cancelled_between_two_calls() -> None:
    """A cancellation ends the pause at once, and there is no further call."""
    calls, call = failing(*[Passing()] * 1_000)
    running = asyncio.create_task(retried(call, may_pass, patience=None, longest_pause=3_600.0))
    async with asyncio.timeout(10):
        while len(calls) < 3:
            await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_cancelled_call_is_not_made_again() -> None:
    """Cancellation is none of what may pass, even if everything is said to."""
    calls, call = failing(asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        await retried(call, lambda error: isinstance(error, Exception), patience=10.0, longest_pause=0.01)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("error", "unanswered"),
    [
        (rpc(RPCStatusCode.UNAVAILABLE), True),
        (WorkflowUpdateRPCTimeoutOrCancelledError(), True),
        (refused("AcceptedUpdateCompletedWorkflow"), True),
        (refused("WorkflowNotReady"), True),
        (refused("queue_full"), False),
        (asyncio.CancelledError(), False),
    ],
)
def test_a_refusal_is_an_answer(error: BaseException, unanswered: bool) -> None:
    """Only what did not get through, or did not come back, counts as unanswered."""
    assert is_unanswered(error) is unanswered


@pytest.mark.parametrize(
    "error",
    [
        rpc(RPCStatusCode.RESOURCE_EXHAUSTED),
        rpc(RPCStatusCode.UNAVAILABLE),
        rpc(RPCStatusCode.DEADLINE_EXCEEDED),
        rpc(RPCStatusCode.ABORTED),
        rpc(RPCStatusCode.FAILED_PRECONDITION),
        rpc(RPCStatusCode.CANCELLED),
        rpc(RPCStatusCode.INTERNAL),
        refused("AcceptedUpdateCompletedWorkflow"),
        refused("WorkflowNotReady"),
        WorkflowUpdateRPCTimeoutOrCancelledError(),
    ],
    ids=repr,
)
async def test_a_client_waits_out_what_passes(error: BaseException) -> None:
    """A pool that is busy, or just goes on in a new run, and a server that is away for a moment are not noticed."""
    calls, call = failing(error)
    assert await patiently(call) == "done"
    assert len(calls) == 2


async def test_a_pool_that_goes_on_in_a_new_run_is_asked_again(client: Client) -> None:
    """A link passes on why an update failed, so that who asks can tell what passes from a refusal."""
    calls, call = failing(refused("AcceptedUpdateCompletedWorkflow"))
    assert await patiently(lambda: PoolLinks(client).to("lab").ask(call)) == "done"
    assert len(calls) == 2


@pytest.mark.parametrize(
    "error",
    [
        rpc(RPCStatusCode.NOT_FOUND),
        rpc(RPCStatusCode.INVALID_ARGUMENT),
        rpc(RPCStatusCode.PERMISSION_DENIED),
        rpc(RPCStatusCode.UNAUTHENTICATED),
        rpc(RPCStatusCode.ALREADY_EXISTS),
        rpc(RPCStatusCode.UNIMPLEMENTED),
        refused("queue_full"),
        ValueError("ours"),
    ],
    ids=repr,
)
async def test_a_client_does_not_wait_for_what_stays(error: Exception) -> None:
    """What another call would not change is raised at once."""
    calls, call = failing(error)
    with pytest.raises(type(error)):
        await patiently(call)
    assert len(calls) == 1


async def test_a_client_gives_up_in_the_end() -> None:
    """After its patience the refusal itself is raised."""
    _, call = failing(*[rpc(RPCStatusCode.RESOURCE_EXHAUSTED)] * 1_000)
    with pytest.raises(RPCError):
        await patiently(call, 0.2)


async def test_a_call_that_makes_an_error_of_its_cancellation_is_cancelled_all_the_same() -> None:
    """As updates of the SDK do: nobody who stops, or whose time is over, is kept by retries."""
    begun = 0

    async def call() -> None:
        nonlocal begun
        begun += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise WorkflowUpdateRPCTimeoutOrCancelledError from None

    calling = asyncio.create_task(retried(call, is_unanswered, patience=None, longest_pause=0.01))
    await asyncio.sleep(0)
    calling.cancel()
    done, _ = await asyncio.wait({calling}, timeout=5)
    assert done
    assert calling.cancelled()
    assert begun == 1


@pytest.mark.parametrize(
    ("status", "calls"), [(WorkflowExecutionStatus.CONTINUED_AS_NEW, 2), (WorkflowExecutionStatus.TERMINATED, 1)]
)
async def test_a_query_that_met_a_new_run_is_made_again(
    client: Client, status: WorkflowExecutionStatus, calls: int
) -> None:
    """A pool that goes on in a new run has not ended; one that was terminated has."""
    made, call = failing(WorkflowQueryRejectedError(status))
    link = PoolLinks(client).to("lab")
    if calls == 1:
        with pytest.raises(UnknownPool, match="was ended"):
            await patiently(lambda: link.ask(call))
    else:
        assert await patiently(lambda: link.ask(call)) == "done"
    assert len(made) == calls


async def test_a_query_that_failed_by_a_replay_is_put_again() -> None:
    """Twice, since that may pass; after that it is told, and any other failure is told at once."""
    fault = WorkflowQueryFailedError("[TMPRL1100] Nondeterminism error: Missing associated machine")
    for failures in (0, 1, 2):
        answers: list[Any] = [fault] * failures + ["there"]
        assert await put_again(partial(_next, answers)) == "there"
    with pytest.raises(WorkflowQueryFailedError):
        await put_again(partial(_next, [fault] * 3))
    answers = [WorkflowQueryFailedError("no such query"), "there"]
    with pytest.raises(WorkflowQueryFailedError):
        await put_again(partial(_next, answers))
    assert answers == ["there"]


async def _next(answers: list[Any]) -> Any:
    answer = answers.pop(0)
    if isinstance(answer, Exception):
        raise answer
    return answer

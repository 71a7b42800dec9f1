"""The dispatcher passes work to the entry point of its kind, once, and takes what comes of it. Rows S1-32 to S1-37."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic_core import to_json

from support.leases import lease_context
from toolcrib.activities.context import InfrastructureFailed, LeaseContext, RunFailed, WorkResult
from toolcrib.activities.dispatcher import MAX_MESSAGE_LENGTH, MAX_RESULT_BYTES, EntryPoints, TaskDispatcher
from toolcrib.activities.guard import Guard, GuardLost, NotKilled
from toolcrib.scheduling.messages import Assignment, Report, ReportOutcome

GOAL = Assignment(task_id="task-1", attempt=1, goal="reach it")
WORKFLOW = Assignment(task_id="task-1", attempt=1, workflow="smoke@2", inputs={"depth": 3})
WORK = Assignment(task_id="task-1", attempt=1, work="resize", inputs={"to": 9})


class Entry:
    """An entry point, as a goal runner and as a workflow runner: notes its calls, and behaves as it is told."""

    def __init__(self, behaviour: Callable[[LeaseContext], Awaitable[Any]]) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._behaviour = behaviour

    async def run(self, *call: Any) -> Any:
        self.calls.append(call)
        return await self._behaviour(call[-1])


@pytest.fixture
def context(tmp_path: Path) -> LeaseContext:
    """The context of a lease of device `host/slot-1`; nothing is started under its guard."""
    return lease_context(cast("Guard", None), tmp_path)


async def dispatched(
    context: LeaseContext, behaviour: Callable[[LeaseContext], Awaitable[Any]], limit: float = 60.0
) -> Report:
    """Return what comes of a goal whose runner behaves so."""
    return await TaskDispatcher(Entry(behaviour), None).dispatch(GOAL, context, limit)


def returning(result: Any) -> Callable[[LeaseContext], Awaitable[Any]]:
    """Return the behaviour of a runner that returns `result`."""

    async def behave(_: LeaseContext) -> Any:
        return result

    return behave


def raising(error: BaseException) -> Callable[[LeaseContext], Awaitable[Any]]:
    """Return the behaviour of a runner that raises `error`."""

    async def behave(_: LeaseContext) -> Any:
        raise error

    return behave


async def test_s1_33_a_goal_goes_to_the_goal_runner(context: LeaseContext) -> None:
    """Once, with the goal and the context of the device's lease; the workflow runner is left alone."""
    goals, workflows = Entry(returning("reached")), Entry(returning("never"))
    report = await TaskDispatcher(goals, workflows).dispatch(GOAL, context, 60.0)
    assert goals.calls == [("reach it", context)]
    assert workflows.calls == []
    assert (report.lease_id, report.outcome, report.result) == (context.lease.id, ReportOutcome.DONE, "reached")


async def test_s1_34_a_workflow_goes_to_the_workflow_runner(context: LeaseContext) -> None:
    """Once, with its reference, its inputs and the context; the goal runner is left alone."""
    goals, workflows = Entry(returning("never")), Entry(returning({"steps": 2}))
    report = await TaskDispatcher(goals, workflows).dispatch(WORKFLOW, context, 60.0)
    assert workflows.calls == [("smoke@2", {"depth": 3}, context)]
    assert goals.calls == []
    assert (report.outcome, report.result) == (ReportOutcome.DONE, {"steps": 2})


async def test_devices_of_a_kind_may_have_runners_of_their_own(context: LeaseContext) -> None:
    """They take the place of the host's for devices of that driver type, and of no other."""
    host, phones = Entry(returning("host")), Entry(returning("phone"))
    own = {"adb": EntryPoints(goals=phones, workflows=None)}
    dispatcher = TaskDispatcher(host, host, by_driver_type=own)
    assert (await dispatcher.dispatch(GOAL, context, 60.0)).result == "host"
    context.device = replace(context.device, driver_type="adb")
    assert (await dispatcher.dispatch(GOAL, context, 60.0)).result == "phone"
    assert (await dispatcher.dispatch(WORKFLOW, context, 60.0)).outcome is ReportOutcome.FAILED
    assert (len(host.calls), len(phones.calls)) == (1, 1)


async def test_a_work_goes_to_the_applications_works(context: LeaseContext) -> None:
    """Once, with its name, its inputs and the context; a host without works says so."""
    others, works = Entry(returning("never")), Entry(returning(5))
    report = await TaskDispatcher(others, others, works).dispatch(WORK, context, 60.0)
    assert (works.calls, others.calls) == ([("resize", {"to": 9}, context)], [])
    assert (report.outcome, report.result) == (ReportOutcome.DONE, 5)
    report = await TaskDispatcher(others, others).dispatch(WORK, context, 60.0)
    assert (report.outcome, report.error and report.error.message) == (ReportOutcome.FAILED, "host host runs no works")


@pytest.mark.parametrize("assignment", [GOAL, WORKFLOW], ids=["s1_35_goal", "s1_36_workflow"])
@pytest.mark.parametrize("result", [None, 0, "", [], {"a": [1, None, "é"]}, 10**30])
async def test_what_the_run_returns_is_the_result(context: LeaseContext, assignment: Assignment, result: Any) -> None:
    """A run that returns is done, whatever JSON value it returns."""
    entry = Entry(returning(result))
    report = await TaskDispatcher(entry, entry).dispatch(assignment, context, 60.0)
    assert (report.outcome, report.result, report.error) == (ReportOutcome.DONE, result, None)


@pytest.mark.parametrize("assignment", [GOAL, WORKFLOW], ids=["goal", "workflow"])
async def test_s1_37_it_does_not_try_again(context: LeaseContext, assignment: Assignment) -> None:
    """A run that raises was called once, and is failed."""
    entry = Entry(raising(ValueError("no such page")))
    report = await TaskDispatcher(entry, entry).dispatch(assignment, context, 60.0)
    assert len(entry.calls) == 1
    assert report.outcome is ReportOutcome.FAILED
    assert report.error is not None
    assert (report.error.code, report.error.message) == ("task_failed", "ValueError: no such page")


async def test_a_runners_own_verdict_is_kept_whole(context: LeaseContext) -> None:
    """Code, message, hint and result of `RunFailed` are the task's."""
    verdict = RunFailed("2 of 7 failed", hint="see the log", code="tests_failed", result={"failed": 2})
    report = await dispatched(context, raising(verdict))
    assert (report.error, report.result) == (verdict.body, {"failed": 2})


@pytest.mark.parametrize(
    ("assignment", "message"),
    [(GOAL, "host host runs no goals on local devices"), (WORKFLOW, "host host runs no workflows on local devices")],
    ids=["goal", "workflow"],
)
async def test_a_host_without_a_runner_says_so(context: LeaseContext, assignment: Assignment, message: str) -> None:
    """Work of a kind that its host does not run is failed, and the message names the host."""
    report = await TaskDispatcher(None, None).dispatch(assignment, context, 60.0)
    assert report.outcome is ReportOutcome.FAILED
    assert report.error is not None
    assert report.error.message == message
    assert report.error.hint is not None


async def test_the_time_limit_ends_a_run_and_keeps_what_it_has(context: LeaseContext) -> None:
    """A run that takes too long is cancelled and failed by `time_limit`, with its partial result."""
    ended = []

    async def for_ever(context: LeaseContext) -> None:
        context.partial_result = {"output": "so far"}
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    report = await dispatched(context, for_ever, limit=0.01)
    assert ended
    assert report.error is not None
    assert (report.error.code, report.error.message) == ("time_limit", "the work took longer than 0.01 s")
    assert report.result == {"output": "so far"}


async def _returns(_: LeaseContext) -> str:
    return "too late"


async def _fails(_: LeaseContext) -> str:
    raise RunFailed("killed")


@pytest.mark.parametrize("last_word", [_returns, _fails])
async def test_who_is_stopped_by_the_limit_has_no_say(
    context: LeaseContext, last_word: Callable[[LeaseContext], Awaitable[str]]
) -> None:
    """However a runner ends after it was stopped, the verdict is `time_limit`."""

    async def stubborn(context: LeaseContext) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return await last_word(context)
        return "never"

    report = await dispatched(context, stubborn, limit=0.01)
    assert report.error is not None
    assert report.error.code == "time_limit"


@pytest.mark.parametrize("error", [TimeoutError("the page did not load"), asyncio.CancelledError("a part of it")])
async def test_an_end_inside_the_runner_is_not_taken_for_ours(context: LeaseContext, error: BaseException) -> None:
    """A timeout or a cancellation of the runner's own is its failure, and says nothing about limit or lease."""
    report = await dispatched(context, raising(error))
    assert report.error is not None
    assert (report.error.code, report.error.message) == ("task_failed", f"{type(error).__name__}: {error}")


async def test_a_cancelled_lease_is_nobodys_failure(context: LeaseContext) -> None:
    """When the lease is cancelled the run is too, and the cancellation passes through."""
    started = asyncio.Event()

    async def for_ever(_: LeaseContext) -> None:
        started.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(dispatched(context, for_ever))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize(
    "error",
    [GuardLost("the guard is gone"), NotKilled("it is still there"), InfrastructureFailed("the cable is loose")],
)
async def test_a_fault_of_the_host_is_nobodys_verdict(context: LeaseContext, error: Exception) -> None:
    """`GuardLost`, `NotKilled` and `InfrastructureFailed` pass through: they tell of the host, not of the work."""
    with pytest.raises(type(error)):
        await dispatched(context, raising(error))


async def test_who_is_stopped_by_the_limit_cannot_blame_the_infrastructure(context: LeaseContext) -> None:
    """What it says when it is stopped comes of being stopped: the verdict is `time_limit`, and final."""

    async def blaming(_: LeaseContext) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise InfrastructureFailed("the connection was closed") from None

    report = await dispatched(context, blaming, limit=0.01)
    assert report.error is not None
    assert report.error.code == "time_limit"


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


BAD_RESULTS = {
    "set": {1},
    "bytes": b"x",
    "nan": float("nan"),
    "half a character": "\ud800",
    "nested 300 deep": _nested(300),
    "nested 5,000 deep": _nested(5_000),
    "object": object(),
}


@pytest.mark.parametrize("name", BAD_RESULTS)
async def test_a_result_that_is_not_json_fails_the_task(context: LeaseContext, name: str) -> None:
    """A result that cannot be kept is no reason to run again: it is the runner's mistake, and says so."""
    report = await dispatched(context, returning(BAD_RESULTS[name]))
    assert (report.outcome, report.result) == (ReportOutcome.FAILED, None)
    assert report.error is not None
    assert report.error.message.startswith("the result is not JSON: ")


async def test_a_result_may_have_256_kib(context: LeaseContext) -> None:
    """One of just that size is kept; one byte more, and the task is failed, with a hint where to put it."""
    largest = "x" * (MAX_RESULT_BYTES - 2)
    assert (await dispatched(context, returning(largest))).result == largest
    report = await dispatched(context, returning(largest + "x"))
    assert report.error is not None
    assert report.error.message == "the result is 262,145 bytes long, the limit is 262,144"
    assert "TOOLCRIB_ARTIFACTS" in (report.error.hint or "")


@pytest.mark.parametrize("name", BAD_RESULTS)
async def test_a_failure_is_reported_without_a_result_that_cannot_be_kept(context: LeaseContext, name: str) -> None:
    """What a failed run left is dropped if it is not JSON; why it failed is told all the same."""
    report = await dispatched(context, raising(RunFailed("2 failed", result=BAD_RESULTS[name])))
    assert report.result is None
    assert report.error is not None
    assert report.error.message.startswith("2 failed (the result is not JSON: ")


@pytest.mark.parametrize("text", ["x" * 10_000, "\udcff broken", "\0"])
async def test_any_message_can_be_reported(context: LeaseContext, text: str) -> None:
    """The message of an error is cut to its limit, and can be sent whatever is in it."""
    report = await dispatched(context, raising(ValueError(text)))
    assert report.error is not None
    assert report.error.message.encode()
    assert len(report.error.message) <= MAX_MESSAGE_LENGTH


def ours(**more: Any) -> WorkResult:
    """Return a result as toolcrib's own runners give it."""
    return WorkResult(exit_code=0, output="", omitted_bytes=0, **more)


async def _over_time(context: LeaseContext) -> None:
    context.partial_result = ours()
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    "behaviour",
    [returning(ours()), raising(RunFailed("2 failed", result=ours())), _over_time],
    ids=["done", "failed", "time_limit"],
)
async def test_artifacts_are_listed_in_our_results(
    context: LeaseContext, behaviour: Callable[[LeaseContext], Awaitable[Any]]
) -> None:
    """However the work ended; without artifacts, and in results of others, there is nothing of it."""
    plain = await dispatched(context, behaviour, limit=0.05)
    assert plain.result == {"exit_code": 0, "output": "", "omitted_bytes": 0}
    (context.artifacts / "report").mkdir()
    (context.artifacts / "report" / "a.txt").write_text("é")
    (context.artifacts / "link").symlink_to("/etc/passwd")
    report = await dispatched(context, behaviour, limit=0.05)
    assert report.result == {**plain.result, "artifacts": [{"path": "report/a.txt", "bytes": 2}]}
    assert (await dispatched(context, returning({"exit_code": 0}))).result == {"exit_code": 0}


@pytest.mark.parametrize("size", [0, MAX_RESULT_BYTES - 3_000], ids=["small", "large"])
async def test_no_list_of_artifacts_makes_a_result_too_large(context: LeaseContext, size: int) -> None:
    """It is cut, and says so; the task is not failed for what it left."""
    for number in range(1_010):
        (context.artifacts / f"{number:04}").touch()
    report = await dispatched(context, returning(ours(steps="x" * size)))
    assert report.outcome is ReportOutcome.DONE
    assert report.result["more_artifacts"] is True
    listed = [artifact["path"] for artifact in report.result["artifacts"]]
    assert listed == [f"{number:04}" for number in range(len(listed))]
    assert (len(listed) == 1_000) is (size == 0)
    largest = ours(steps="x" * (MAX_RESULT_BYTES - len(to_json(ours(steps="")))))
    assert (await dispatched(context, returning(largest))).result == largest


async def test_artifacts_that_cannot_be_listed_change_no_verdict(context: LeaseContext) -> None:
    """A work may remove the folder, or put something else there."""
    context.artifacts.rmdir()
    assert (await dispatched(context, returning(ours()))).result == ours()
    context.artifacts.symlink_to("/etc")
    assert (await dispatched(context, returning(ours()))).result == ours()

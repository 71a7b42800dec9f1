"""What runners have to do, as tests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from toolcrib.activities.context import LeaseContext
from toolcrib.activities.dispatcher import TaskDispatcher
from toolcrib.activities.runners import GoalRunner, WorkflowRunner
from toolcrib.activities.runners.aside import STOP_WITHIN, AsideRunner
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.messages import Assignment, Report, ReportOutcome
from toolcrib.worker.conformance.leases import SLOT, another, children, leased, run

AT_ONCE: Final = 3


class RunnerConformance:
    """What every runner has to do; it is used through `GoalRunnerConformance` and `WorkflowRunnerConformance`."""

    time_limit: ClassVar[float] = 60.0
    """Seconds in which a run that ends by itself has to."""
    device: ClassVar[DeviceSpec] = SLOT
    """The device that runs get."""

    def test_what_it_returns_can_be_kept(self) -> None:
        """A run that succeeds returns JSON data of at most 256 KiB."""
        run(self._is_done())

    def test_it_runs_several_at_a_time(self) -> None:
        """One instance serves all devices of a host, and keeps nothing that belongs to one run or one event loop."""
        run(self._are_done())

    def test_it_tells_a_failure(self) -> None:
        """A run that fails raises, with words that say why."""
        run(self._fails())

    def test_it_stops_when_it_is_cancelled(self) -> None:
        """Within 5 seconds, and no process is left: else it keeps its device."""
        run(self._stops())

    def work(self) -> Assignment:
        """Return work that succeeds."""
        raise NotImplementedError("define work() in your test class: see its docstring")

    def failing_work(self) -> Assignment:
        """Return work that fails."""
        raise NotImplementedError("define failing_work() in your test class: see its docstring")

    def endless_work(self) -> Assignment:
        """Return work that goes on until it is cancelled."""
        raise NotImplementedError("define endless_work() in your test class: see its docstring")

    def dispatcher(self) -> TaskDispatcher:
        """Return what runs it as a host does."""
        raise NotImplementedError("define dispatcher() in your test class: see its docstring")

    async def _is_done(self) -> None:
        async with leased(self.device) as context:
            report = await self._report(self.work(), context)
        assert report.outcome is ReportOutcome.DONE, report.error

    async def _are_done(self) -> None:
        async with leased(self.device) as context:
            contexts = [another(context, 2 + number) for number in range(AT_ONCE)]
            dispatcher = self.dispatcher()
            runs = [dispatcher.dispatch(self.work(), each, self.time_limit) for each in contexts]
            reports = await asyncio.gather(*runs)
        assert [report.outcome for report in reports] == [ReportOutcome.DONE] * AT_ONCE, reports

    async def _fails(self) -> None:
        async with leased(self.device) as context:
            report = await self._report(self.failing_work(), context)
        assert report.outcome is ReportOutcome.FAILED, f"it returned {report.result!r}"
        assert report.error is not None
        assert report.error.code != "time_limit", "it did not end by itself"
        assert report.error.message.strip(), "its error says nothing"

    async def _stops(self) -> None:
        async with leased(self.device) as context:
            before = children()
            running = asyncio.ensure_future(self._report(self.endless_work(), context))
            done, _ = await asyncio.wait({running}, timeout=1.0)
            assert not done, f"it ended by itself: {running.result()}"
            running.cancel()
            begun = time.monotonic()
            await asyncio.wait({running}, timeout=2 * STOP_WITHIN)
            assert running.done(), "it does not stop"
            error = None if running.cancelled() else running.exception()
            assert error is None, f"it does not stop: {error}"
            assert time.monotonic() - begun < STOP_WITHIN, "it took too long to stop"
            await context.guard.end(context.lease.id)
            left = children() - before
            assert not left, f"processes that it started without the lease's guard are left: {sorted(left)}"

    async def _report(self, work: Assignment, context: LeaseContext) -> Report:
        return await self.dispatcher().dispatch(work, context, self.time_limit)


class GoalRunnerConformance(RunnerConformance):
    """Inherit from it, set the goals and return the runner: see the top of this module."""

    goal: ClassVar[str]
    """One that is reached."""
    failing_goal: ClassVar[str]
    """One that cannot be reached."""
    endless_goal: ClassVar[str]
    """One that is pursued until the run is cancelled."""

    def runner(self) -> GoalRunner:
        """Return a new runner."""
        raise NotImplementedError("define runner() in your test class: see its docstring")

    def work(self) -> Assignment:
        """Return the goal that is reached."""
        return Assignment(task_id="task-1", attempt=1, goal=self.goal)

    def failing_work(self) -> Assignment:
        """Return the goal that cannot be reached."""
        return Assignment(task_id="task-1", attempt=1, goal=self.failing_goal)

    def endless_work(self) -> Assignment:
        """Return the goal that is pursued until the run is cancelled."""
        return Assignment(task_id="task-1", attempt=1, goal=self.endless_goal)

    def dispatcher(self) -> TaskDispatcher:
        """Return what runs it as a host does."""
        return TaskDispatcher(AsideRunner(self.runner()), None)


class WorkflowRunnerConformance(RunnerConformance):
    """As `GoalRunnerConformance`, with workflows, as `name` or `name@version`, and their inputs."""

    workflow: ClassVar[tuple[str, Mapping[str, Any]]]
    """One that succeeds."""
    failing_workflow: ClassVar[tuple[str, Mapping[str, Any]]]
    """One that fails."""
    endless_workflow: ClassVar[tuple[str, Mapping[str, Any]]]
    """One that goes on until it is cancelled."""

    def runner(self) -> WorkflowRunner:
        """Return a new runner."""
        raise NotImplementedError("define runner() in your test class: see its docstring")

    def work(self) -> Assignment:
        """Return the workflow that succeeds."""
        return _workflow(*self.workflow)

    def failing_work(self) -> Assignment:
        """Return the workflow that fails."""
        return _workflow(*self.failing_workflow)

    def endless_work(self) -> Assignment:
        """Return the workflow that goes on until it is cancelled."""
        return _workflow(*self.endless_workflow)

    def dispatcher(self) -> TaskDispatcher:
        """Return what runs it as a host does."""
        return TaskDispatcher(None, AsideRunner(self.runner()))


def _workflow(reference: str, inputs: Mapping[str, Any]) -> Assignment:
    return Assignment(task_id="task-1", attempt=1, workflow=reference, inputs=dict(inputs))

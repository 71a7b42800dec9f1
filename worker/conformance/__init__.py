"""Tests for runners, drivers and strategies of others: an author's own test class inherits from one of these.

They are plain classes whose methods pytest finds by their names; no plugin is needed. Runners run as in a host, under a
real guard, on this machine.

class TestBench(GoalRunnerConformance):
    goal, failing_goal, endless_goal = "measure", "measure nothing", "measure for ever"

    def runner(self) -> GoalRunner:
        return Bench()
"""

from __future__ import annotations

from toolcrib.worker.conformance.drivers import DriverConformance
from toolcrib.worker.conformance.leases import leased
from toolcrib.worker.conformance.runners import GoalRunnerConformance, WorkflowRunnerConformance
from toolcrib.worker.conformance.strategies import StrategyConformance

__all__ = [
    "DriverConformance",
    "GoalRunnerConformance",
    "StrategyConformance",
    "WorkflowRunnerConformance",
    "leased",
]

"""What is shipped passes the tests that authors of runners, drivers and strategies get."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from support.browser import CHROMIUM, NO_CHROMIUM
from toolcrib.activities.drivers.browser import BrowserDriver
from toolcrib.activities.drivers.local import LocalDriver
from toolcrib.activities.runners.exec import ExecRunner
from toolcrib.activities.runners.python import PythonGoals, PythonWorkflows
from toolcrib.activities.runners.shell import ShellRunner
from toolcrib.scheduling.strategies import STRATEGIES
from toolcrib.worker import AssignmentStrategy, DeviceSpec, Driver, GoalRunner, WorkflowRunner
from toolcrib.worker.conformance import (
    DriverConformance,
    GoalRunnerConformance,
    StrategyConformance,
    WorkflowRunnerConformance,
)

FUNCTIONS = """
import time
def measure(volts=5): return {"volts": volts}
def break_it(): raise ValueError("no current flows")
def hold(): time.sleep(300)
"""


@pytest.fixture(autouse=True)
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a module `bench`."""
    (tmp_path / "bench.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(tmp_path)


class TestShell(GoalRunnerConformance):
    goal, failing_goal, endless_goal = "echo done", "echo no; exit 3", "trap '' TERM; sleep 300 & sleep 300; sleep 300"

    def runner(self) -> GoalRunner:
        return ShellRunner()


class TestExec(GoalRunnerConformance):
    goal, failing_goal, endless_goal = "print('done')", "1 / 0", "import time; time.sleep(300)"

    def runner(self) -> GoalRunner:
        return ExecRunner([sys.executable, "-c", "{goal}"])


class TestPythonGoals(GoalRunnerConformance):
    goal, failing_goal, endless_goal = 'bench:measure {"volts": 3}', "bench:break_it", "bench:hold"

    def runner(self) -> GoalRunner:
        return PythonGoals()


class TestPythonWorkflows(WorkflowRunnerConformance):
    workflow: ClassVar[Any] = ("bench:measure", {"volts": 3})
    failing_workflow: ClassVar[Any] = ("bench:break_it", {})
    endless_workflow: ClassVar[Any] = ("bench:hold", {})

    def runner(self) -> WorkflowRunner:
        return PythonWorkflows()


class TestLocalDriver(DriverConformance):
    def driver(self) -> Driver:
        return LocalDriver()

    def device(self) -> DeviceSpec:
        return DeviceSpec(id="slot-1", driver="local", driver_type="local")


@pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
class TestBrowserDriver(DriverConformance):
    def driver(self) -> Driver:
        return BrowserDriver()

    def device(self) -> DeviceSpec:
        return DeviceSpec(id="browser-1", driver="browser", driver_type="browser")


@pytest.mark.parametrize("name", STRATEGIES.names())
class TestStrategies(StrategyConformance):
    @pytest.fixture(autouse=True)
    def named(self, name: str) -> None:
        self.name = name

    def strategy(self) -> AssignmentStrategy:
        return STRATEGIES.get(self.name)

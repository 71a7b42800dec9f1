"""Third parties bring strategies: in a module that is named, or by an entry point of an installed package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolcrib.activities.brought import activity_type, workflow_type
from toolcrib.client import InvalidRequest
from toolcrib.scheduling.strategies import STRATEGIES, StrategyRegistry
from toolcrib.worker import plugins
from toolcrib.worker.plugins import load_plugins

STRATEGY = """
from toolcrib.scheduling.strategies import assignment_strategy, FifoMatch

@assignment_strategy("{name}")
class Theirs(FifoMatch):
    pass
"""

WORKFLOW = """
from temporalio import activity, workflow

@activity.defn
def theirs() -> None:
    pass

@workflow.defn
class Theirs:
    @workflow.run
    async def run(self, given: dict) -> None:
        pass

WORKFLOWS = [Theirs]
ACTIVITIES = [theirs]
"""


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder from which modules can be imported; they and what they register are forgotten afterwards."""
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(STRATEGIES, "_strategies", {name: STRATEGIES.get(name) for name in STRATEGIES.names()})
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> StrategyRegistry:
    """A registry in place of the one that pools use."""
    registry = StrategyRegistry()
    monkeypatch.setattr(plugins, "STRATEGIES", registry)
    return registry


def install(folder: Path, name: str, path: str) -> None:
    """Install a package that brings strategy `name` by an entry point."""
    info = folder / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[toolcrib.strategies]\n{name} = {path}\n")


def test_a_module_registers_what_it_brings(modules: Path) -> None:
    """A strategy is known after its module was named."""
    (modules / "their_plugin.py").write_text(STRATEGY.format(name="their_strategy"))
    load_plugins(["their_plugin"])
    assert "their_strategy" in STRATEGIES


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "ModuleNotFoundError: No module named 'their_broken'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def", "SyntaxError: "),
        (STRATEGY.format(name="fifo_match"), "strategy: 'fifo_match' is registered already"),
        (STRATEGY.format(name=""), "InvalidRequest: strategy: "),
        ("class Plain: pass\nWORKFLOWS = [Plain]", "Plain'> is no workflow"),
        ("def plain(): pass\nACTIVITIES = [plain]", "is no activity"),
    ],
)
def test_a_module_that_cannot_be_loaded_is_named(modules: Path, text: str | None, reason: str) -> None:
    """The error names the module and says on one line what is wrong."""
    if text is not None:
        (modules / "their_broken.py").write_text(text)
    with pytest.raises(InvalidRequest) as caught:
        load_plugins(["their_broken"])
    assert caught.value.message.startswith("plugin 'their_broken' cannot be loaded: ")
    assert reason in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint is not None


def test_what_modules_list_is_brought_once(modules: Path) -> None:
    """A module named twice counts once; two that bring a workflow of the same type are refused."""
    (modules / "their_one.py").write_text(WORKFLOW)
    (modules / "their_other.py").write_text(WORKFLOW)
    brought = load_plugins(["their_one", "their_one"])
    assert [workflow_type(cls) for cls in brought.workflows] == ["Theirs"]
    assert [activity_type(function) for function in brought.activities] == ["theirs"]
    with pytest.raises(InvalidRequest, match="two plugins bring the workflow 'Theirs'"):
        load_plugins(["their_one", "their_other"])


def test_an_installed_package_brings_its_strategy(modules: Path, registry: StrategyRegistry) -> None:
    """What has an entry point needs not be named; loading it again is harmless."""
    (modules / "their_package.py").write_text("from toolcrib.scheduling.strategies import FifoMatch as Theirs\n")
    install(modules, "packaged", "their_package:Theirs")
    load_plugins()
    load_plugins()
    assert registry.names() == ["packaged"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nowhere:Theirs", "ModuleNotFoundError: "),
        ("json:nothing", "AttributeError: "),
        ("builtins:dict", "has no rank() and choose()"),
    ],
)
@pytest.mark.usefixtures("registry")
def test_an_entry_point_that_does_not_work_is_named(modules: Path, path: str, reason: str) -> None:
    """The error names the strategy and where it was to come from."""
    install(modules, "packaged", path)
    with pytest.raises(InvalidRequest) as caught:
        load_plugins()
    assert caught.value.message.startswith(f"strategy 'packaged' of entry point {path} cannot be loaded: ")
    assert reason in caught.value.message

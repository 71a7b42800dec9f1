"""Names in settings become objects, or errors that name what is there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from toolcrib.activities.drivers import load_driver
from toolcrib.activities.loading import load
from toolcrib.activities.runners import load_goal_runner, load_workflow_runner
from toolcrib.activities.runners.shell import ShellRunner
from toolcrib.scheduling.errors import InvalidRequest

PLUGIN = """
class Thing:
    def run(self): ...

def make(): return Thing()

made = Thing()
plain = 5

def broken(): raise RuntimeError("no\\nluck")
"""


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a module `plug_in`, one that fails on import, and a package with an entry point."""
    (tmp_path / "plug_in.py").write_text(PLUGIN)
    (tmp_path / "bad_plug_in.py").write_text("import no_such_library\n")
    info = tmp_path / "plug_in-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-in\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[things]\nthird = plug_in:Thing\nfirst = plug_in:plain\n")
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("plug_in", "bad_plug_in"):
        monkeypatch.delitem(sys.modules, module, raising=False)


@pytest.mark.parametrize("reference", ["first", "third", "plug_in:Thing", "plug_in:make", "plug_in:made"])
def test_each_way_of_naming(reference: str) -> None:
    """A shipped name, an entry point, a class, a factory and an instance all give the object; shipped names win."""
    thing = load(reference, "things", {"first": "plug_in:made"}, "thing", ("run",))
    assert type(thing).__name__ == "Thing"


def test_unknown_name_lists_the_known() -> None:
    """An unknown name is refused with the names there are, shipped or installed."""
    with pytest.raises(InvalidRequest) as caught:
        load("nope", "things", {"zero": "plug_in:made"}, "thing")
    assert caught.value.message == "there is no thing 'nope'; known: first, third, zero"
    assert "things" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("bad_plug_in:Thing", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("plug_in:Missing", "AttributeError: module 'plug_in' has no attribute 'Missing'"),
        ("plug_in:broken", "RuntimeError: no luck"),
        ("no_such_module:x", "ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_failure_to_load_is_told_in_one_line(reference: str, reason: str) -> None:
    """What fails while it is loaded or made is named with its error, in one line."""
    with pytest.raises(InvalidRequest) as caught:
        load(reference, "things", {}, "thing")
    assert caught.value.message == f"thing {reference!r} cannot be loaded: {reason}"


@pytest.mark.parametrize("reference", [":", "plug_in:", ":x", "plug in:x", ""])
def test_malformed_reference_is_refused(reference: str) -> None:
    """A reference that is no name and no path is refused, not a traceback."""
    with pytest.raises(InvalidRequest):
        load(reference, "things", {}, "thing")


def test_object_of_another_kind_is_refused() -> None:
    """An object without the methods it must have is refused when it is loaded, not when it is used."""
    with pytest.raises(InvalidRequest, match=r"thing 'plug_in:plain' .* has no method run"):
        load("plug_in:plain", "things", {}, "thing", ("run",))


def test_shipped_runners_are_found_and_unknown_ones_refused() -> None:
    """`shell` is the shipped goal runner; unknown runners and drivers are refused by name."""
    assert isinstance(load_goal_runner("shell"), ShellRunner)
    for loader, what in (
        (load_goal_runner, "goal runner"),
        (load_workflow_runner, "workflow runner"),
        (load_driver, "driver"),
    ):
        with pytest.raises(InvalidRequest, match=f"there is no {what} 'nope'"):
            loader("nope")

"""The rules are pure. How the parts import each other, import-linter checks in `make check`; this is the rest."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PURE = ("scheduling", "definitions")
FILES = sorted(file for part in PURE for file in (ROOT / part).rglob("*.py"))
IMPURE = {"now", "today", "utcnow", "time", "monotonic", "uuid1", "uuid4", "uuid7", "open", "print", "input"}
IMPORT_ALL = """
import importlib, json, pkgutil, sys
for part in sys.argv[1:]:
    package = importlib.import_module(part)
    for module in pkgutil.walk_packages(package.__path__, part + "."):
        importlib.import_module(module.name)
print(json.dumps(list(sys.modules)))
"""


def test_what_is_pure_loads_without_temporal_and_without_the_rest() -> None:
    """Whatever the rules and definitions import, directly or not, is neither Temporal nor another part of toolcrib."""
    parts = [f"toolcrib.{part}" for part in PURE]
    loaded: list[str] = json.loads(subprocess.check_output([sys.executable, "-c", IMPORT_ALL, *parts]))
    assert not [name for name in loaded if name.startswith("toolcrib.") and not name.startswith(tuple(parts))]
    assert not [name for name in loaded if name.startswith("temporalio")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_what_is_pure_reads_no_clock_and_do_no_io(file: Path) -> None:
    """Time and ids come in as arguments: no code of theirs asks for them, opens a file or prints."""
    calls = [node.func for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    names = {func.id for func in calls if isinstance(func, ast.Name)}
    names |= {func.attr for func in calls if isinstance(func, ast.Attribute)}
    assert not names & IMPURE

"""The rules are pure. How the parts import each other, import-linter checks in `make check`; this is the rest."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

RULES = Path(__file__).parents[2] / "scheduling"
IMPURE = {"now", "today", "utcnow", "time", "monotonic", "uuid1", "uuid4", "uuid7", "open", "print", "input"}
IMPORT_ALL = """
import importlib, json, pkgutil, sys
import toolcrib.scheduling as rules
for module in pkgutil.walk_packages(rules.__path__, rules.__name__ + "."):
    importlib.import_module(module.name)
print(json.dumps(list(sys.modules)))
"""


def test_the_rules_load_without_temporal_and_without_the_rest() -> None:
    """Whatever the rules import, directly or not, is neither Temporal nor another part of toolcrib."""
    loaded: list[str] = json.loads(subprocess.check_output([sys.executable, "-c", IMPORT_ALL]))
    above = [name for name in loaded if name.startswith("toolcrib.") and not name.startswith("toolcrib.scheduling")]
    assert not above
    assert not [name for name in loaded if name.startswith("temporalio")]


@pytest.mark.parametrize("file", sorted(RULES.rglob("*.py")), ids=lambda file: file.name)
def test_the_rules_read_no_clock_and_do_no_io(file: Path) -> None:
    """Time and ids come in as arguments: no rule asks for them, opens a file or prints."""
    calls = [node.func for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    names = {func.id for func in calls if isinstance(func, ast.Name)}
    names |= {func.attr for func in calls if isinstance(func, ast.Attribute)}
    assert not names & IMPURE

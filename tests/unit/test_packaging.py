"""What is in the wheel. A sub-package that was forgotten works in the editable install, and is missing for users."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("scheduling", "definitions", "workflows", "activities", "worker", "client")
RUN_BY_PATH = {"toolcrib.activities.guard.guard_main", "toolcrib.activities.guard.guard_keeper"}
"""The guard's programs: they run without toolcrib, and cannot be imported as part of it."""
IMPORT_ALL = """
import importlib, json, pkgutil, sys, toolcrib
names = [module.name for module in pkgutil.walk_packages(toolcrib.__path__, "toolcrib.")]
files = [importlib.import_module(name).__file__ for name in names if name not in sys.argv]
print(json.dumps([names, files]))
"""

pytestmark = pytest.mark.xdist_group("packaging")


@dataclass(frozen=True, kw_only=True)
class Installed:
    """The wheel, and an environment in which it is installed."""

    names: list[str]
    """What the wheel contains."""
    environment: Path

    def run(self, *command: str) -> str:
        """Run a program of the environment, away from the source, and return its output."""
        program = self.environment / "bin" / command[0]
        done = subprocess.run(
            [program, *command[1:]], cwd=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel of this tree, installed into an environment that borrows the dependencies of ours, but not toolcrib."""
    folder = tmp_path_factory.mktemp("packaging")
    wheel = built(folder)
    environment = folder / "environment"
    python = str(environment / "bin" / "python")
    call(sys.executable, "-m", "venv", "--without-pip", str(environment))
    call(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", str(wheel))
    (packages,) = environment.glob("lib/python*/site-packages")
    # A folder named in a .pth file is searched, but its own .pth files, such as the editable install's, are not read.
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return Installed(names=zipfile.ZipFile(wheel).namelist(), environment=environment)


def built(folder: Path) -> Path:
    """Build the wheel from a copy of the tree, so that leftovers of earlier builds are not in it."""
    tree = folder / "tree"
    for name in (*PARTS, "pyproject.toml", "README.md", "LICENSE"):
        source = ROOT / name
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, tree / name, ignore=ignored) if source.is_dir() else shutil.copy(source, tree / name)
    call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(tree))
    (wheel,) = folder.glob("*.whl")
    return wheel


def call(*command: str) -> None:
    """Run a command that has to succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def modules_of_the_tree() -> set[str]:
    """Return the names of all modules and packages that the source holds."""
    files = (file.relative_to(ROOT).with_suffix("") for part in PARTS for file in (ROOT / part).rglob("*.py"))
    parts = (file.parts[:-1] if file.name == "__init__" else file.parts for file in files)
    return {".".join(("toolcrib", *names)) for names in parts}


def test_the_list_of_packages_is_the_tree() -> None:
    """Every folder with modules is a package of pyproject.toml, and is found in its folder."""
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {file.parent.relative_to(ROOT) for part in PARTS for file in (ROOT / part).rglob("*.py")}
    expected = {f"toolcrib.{'.'.join(folder.parts)}": str(folder) for folder in folders}

    assert setuptools["package-dir"] == expected
    assert set(setuptools["packages"]) == set(expected)


def test_every_dependency_has_its_reason() -> None:
    """Decision 2 names each dependency; those that users install, with the very range."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    reasons = (ROOT / "docs" / "decisions" / "0002-dependencies.md").read_text().replace(", <", ",<")
    for needed in project["dependencies"]:
        name = re.split("[><=]", needed)[0]
        assert f"| {name} | {needed.removeprefix(name)} |" in reasons
    for needed in project["optional-dependencies"]["dev"]:
        assert re.split(r"[\[><]", needed)[0] in reasons


def test_the_type_checkers_see_every_part() -> None:
    """The tree that mypy and pyright read, `.types`, leads to each part."""
    assert {path.name: path.resolve() for path in (ROOT / ".types" / "toolcrib").iterdir() if path.is_dir()} == {
        part: ROOT / part for part in PARTS
    }


def test_every_module_of_the_wheel_can_be_imported(installed: Installed) -> None:
    """All modules of the tree are in the wheel, and import from there without the source."""
    names, files = json.loads(installed.run("python", "-c", IMPORT_ALL, *RUN_BY_PATH))
    assert set(names) == modules_of_the_tree()
    assert all(Path(file).is_relative_to(installed.environment) for file in files)


def test_the_wheel_puts_nothing_beside_toolcrib(installed: Installed) -> None:
    """No `client` or `workflows` at the top level, where other projects have theirs; and no tests."""
    assert {name.split("/")[0].partition("-")[0] for name in installed.names} == {"toolcrib"}


def test_the_wheel_is_typed_and_licensed(installed: Installed) -> None:
    """Users' type checkers believe our hints, and the license is there."""
    assert {f"toolcrib/{part}/py.typed" for part in PARTS} <= set(installed.names)
    assert any(name.endswith("/licenses/LICENSE") for name in installed.names)


def test_the_wheel_brings_the_command(installed: Installed) -> None:
    """`toolcrib` is installed, and works."""
    assert "submit" in installed.run("toolcrib", "--help")

"""`toolcrib definition validate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolcrib.definitions.model import WorkflowDefinition

if TYPE_CHECKING:
    from support.cli import Connections, Run

pytest_plugins = ["support.cli"]

TEXT = """\
name: nightly
version: 1.10
description: Tries the device.
inputs:
  url: {default: http://x, description: Where it is.}
  rounds: {type: integer}
steps:
  - id: folded
    run: >
      echo a
      echo b
  - id: cut
    run: echo issue #5
    env: {URL: "${{ inputs.url }}", COUNTRY: NO}
    timeout: 5m
    retry: {max_attempts: 3}
    continue_on_error: true
  - id: script
    run: |
      echo "it's\ttwo"
      exit 1
    stdin: "${{ steps.cut.stdout }}"
    when: "${{ steps.cut.exit_code == 0 }}"
  - {id: install, runner: exec, run: adb, with: {args: [install, app.apk]}}
outputs:
  said: "${{ steps.cut.stdout }}"
"""
UNDERSTOOD = r"""
nightly@1.10: Tries the device.
inputs
  url: string, default "http://x"; Where it is.
  rounds: integer, required
step 1, folded: shell
  | echo a echo b
step 2, cut: shell, timeout 300s, up to 3 attempts, continue on error
  | echo issue
  env URL: "${{ inputs.url }}"
  env COUNTRY: "NO"
step 3, script: shell, when ${{ steps.cut.exit_code == 0 }}
  | echo "it's\ttwo"
  | exit 1
  stdin: "${{ steps.cut.stdout }}"
step 4, install: exec
  | adb
  with args: ["install", "app.apk"]
outputs
  said: "${{ steps.cut.stdout }}"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A definition with a command that YAML folds, and one that it cuts at a comment."""
    file = tmp_path / "nightly.yaml"
    file.write_text(TEXT, encoding="utf-8")
    return file


def test_it_prints_what_was_understood(cli: Run, connections: Connections, file: Path) -> None:
    """What YAML folded or cut can be seen, since no program can know that it was not meant. No server is asked."""
    ran = cli("definition", "validate", str(file))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == UNDERSTOOD.lstrip("\n")
    assert not connections


def test_it_prints_the_definition_as_json(cli: Run, file: Path) -> None:
    """With `-o json` it is one object, which is the definition, with durations in seconds."""
    ran = cli("definition", "validate", str(file), "-o", "json")
    assert WorkflowDefinition.model_validate_json(ran.out).reference == "nightly@1.10"
    assert json.loads(ran.out)["steps"][1]["timeout"] == 300


def test_what_is_wrong_is_refused_in_two_lines(cli: Run, tmp_path: Path) -> None:
    """With file, line and column, and exit code 4; so is a file that cannot be read."""
    file = tmp_path / "broken.yaml"
    file.write_text("name: x\nsteps:\n  - {id: a, rum: x}\n", encoding="utf-8")
    ran = cli("definition", "validate", str(file))
    assert (ran.code, ran.out) == (4, "")
    assert ran.err == (
        f"error: {file}:3:13: steps[0].rum: unknown key; did you mean run?\nhint: Correct the file and try again.\n"
    )
    assert cli("definition", "validate", str(tmp_path)).code == 4

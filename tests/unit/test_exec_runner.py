"""The goal runner `exec`: a host's own command gets the goal as it is, and no shell reads it."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from support.guarded import running_lab
from support.leases import lease_context
from toolcrib.activities.context import RunFailed
from toolcrib.activities.guard import SpawnFailed
from toolcrib.activities.runners.exec import ExecRunner

SHOW = "import json, sys; print(json.dumps([sys.argv[1:], sys.stdin.read()]))"
WORDS = json.loads(
    r"""["x","It's","a \"b\"","$HOME","`id`","a\\b","*","!!","{{x}}","%s","two\nlines","tab\there","","-n","~",
    "#no","{\"k\": \"v\"}","café"]"""
)


async def _run(goal: str, tmp_path: Path, *command: str) -> Any:
    async with running_lab() as lab:
        context = lease_context(lab.guard, tmp_path)
        context.environment["PYTHONIOENCODING"] = "utf-8"
        return await ExecRunner(command).run(goal, context)


async def _shown(goal: str, tmp_path: Path, *words: str) -> Any:
    """Return the arguments and the input of a command with these words."""
    return json.loads((await _run(goal, tmp_path, sys.executable, "-c", SHOW, *words))["output"])


async def _refused(goal: str, tmp_path: Path, *command: str) -> SpawnFailed:
    with pytest.raises(SpawnFailed) as caught:
        await _run(goal, tmp_path, *command)
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    "goal",
    [*filter(str.strip, WORDS), "two\n\nlines\r\n", "\U0001f4f1 客厅", pytest.param("x" * 65_536, id="64 KiB")],
)
async def test_a_goal_arrives_byte_for_byte(goal: str, tmp_path: Path) -> None:
    """As a part of one argument, in a file that one names, or on standard input if the command has no place for it."""
    ways = {'printf %s "$1"': "{goal}", 'printf %s "${{1#--goal=}}"': "--goal={goal}", 'cat "$1"': "{goal_file}"}
    whole, nothing = (hashlib.sha256(data).hexdigest() for data in (goal.encode(), b""))
    async with running_lab() as lab:
        context = lease_context(lab.guard, tmp_path)
        for way, word in ways.items():
            command = ["/bin/sh", "-c", f"{way} | sha256sum; sha256sum", "sh", word]
            found = await ExecRunner(command).run(goal, context)
            assert found["output"].split() == [whole, "-", nothing, "-"]
        found = await ExecRunner(["sha256sum"]).run(goal, context)
        assert found["output"].split() == [whole, "-"]


async def test_case_c03_words_of_a_command_are_never_a_shells(tmp_path: Path) -> None:
    """Quotes, expansions, lines, an empty word and options arrive as they stand in the host's file."""
    words = [word.replace("{", "{{").replace("}", "}}") for word in WORDS]
    assert await _shown("the goal", tmp_path, *words) == [WORDS, "the goal"]


async def test_places_of_the_lease(tmp_path: Path) -> None:
    """Device, task, attempt, host and the folder of artifacts can be words, too."""
    places = ["{device_id}", "{task_id}", "{attempt}", "{host_id}", "{artifacts}"]
    found = await _shown("g", tmp_path, *places)
    assert found == [["slot-1", "task-1", "1", "host", f"{tmp_path}/artifacts"], "g"]


async def test_a_large_goal(tmp_path: Path) -> None:
    """Comes whole by file or on standard input, of any size; as an argument it is refused with what the host can do."""
    goal = "é" * 100_000
    for number, words in enumerate([["wc", "-c"], ["wc", "-c", "{goal_file}"]]):
        (tmp_path / str(number)).mkdir()
        assert (await _run(goal, tmp_path / str(number), *words))["output"].split()[0] == "200000"
    error = await _refused(goal, tmp_path, "echo", "--goal={goal}")
    assert (
        error.message == "could not start echo: with the goal, an argument has 200,007 bytes, and the limit is 131,071"
    )
    assert "{goal_file}" in (error.hint or "")


async def test_the_largest_goal_that_is_an_argument(tmp_path: Path) -> None:
    """The limit is the kernel's own: a goal of just that size is taken."""
    found = await _run("x" * 131_071, tmp_path, "sh", "-c", "echo ${{#1}}", "sh", "{goal}")
    assert found["output"] == "131071\n"


async def test_a_goal_with_nul(tmp_path: Path) -> None:
    """It cannot be an argument, and the error says how else it can be passed; on standard input it arrives."""
    assert (await _run("a\0b", tmp_path, "wc", "-c"))["output"] == "3\n"
    (tmp_path / "2").mkdir()
    error = await _refused("a\0b", tmp_path / "2", "echo", "{goal}")
    assert error.message == "could not start echo: the goal has a NUL character, which no argument can have"
    assert "stdin" in (error.hint or "")


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        ("echo no; exit 3", 3, "command exited with code 3: no"),
        ("exit 200", 200, "command exited with code 200"),
        ("kill -9 $$", 137, "command was killed by SIGKILL"),
    ],
)
async def test_its_exit_code_is_the_verdict(content: str, code: int, message: str, tmp_path: Path) -> None:
    """As with `shell`: 0 is done, anything else failed, with exit code or signal and the last line."""
    with pytest.raises(RunFailed) as caught:
        await _run("g", tmp_path, "sh", "-c", content)
    assert (caught.value.message, caught.value.result["exit_code"]) == (message, code)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("adbb", f"there is no such command in PATH ({os.environ['PATH']})"),
        ("/etc/passwd", "it is not executable"),
        ("/", "it is a folder"),
    ],
)
async def test_case_c13_a_command_that_cannot_start(
    command: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named when the host starts; and a task fails by it at once, with the reason and what to do."""
    error = await _refused("g", tmp_path, command, "devices")
    assert (error.error_code, error.message) == ("could_not_start", f"could not start {command}: {reason}")
    assert f"command={command}" in capsys.readouterr().out

"""The frame of the command line: help, errors, exit codes, streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.fake_crib import FakeCrib, FakeHandle
from toolcrib.client.cli.report import wants_json
from toolcrib.scheduling.errors import QueueFull, ToolcribError, UnknownPool

if TYPE_CHECKING:
    from support.cli import Connections, Run

pytest_plugins = ["support.cli"]

COMMANDS = ["submit", "status", "list", "watch", "cancel", "strategies", "doctor", "up", "worker", "demo"]
GROUPS = {
    "pool": ["create", "configure", "show", "assign"],
    "device": ["list", "show", "drain", "resume", "quarantine"],
    "host": ["list", "drain", "resume"],
}
TESTS = Path(__file__).parent.parent

_WITH_A_FAKE = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from support.fake_crib import FakeCrib
import toolcrib.client.cli.session as session
from toolcrib.client.cli import main
async def connect(*_):
    {body}
session.connect = connect
main()
"""


def _in_a_process(
    *arguments: str,
    body: str = "return FakeCrib()",
    stdout: int = subprocess.PIPE,
    variables: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    script = _WITH_A_FAKE.format(body=body)
    return subprocess.run(
        [sys.executable, "-c", script, str(TESTS), *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, **(variables or {})},
        check=False,
    )


@pytest.mark.parametrize(
    "words",
    [[name] for name in (*COMMANDS, *GROUPS)] + [[group, name] for group in GROUPS for name in GROUPS[group]] + [[]],
)
def test_every_help_ends_with_examples(cli: Run, words: list[str]) -> None:
    """Each help goes to stdout, ends with examples that can be copied, and has no boxes."""
    ran = cli(*words, "--help")
    assert ran.code == 0
    assert ran.err == ""
    examples = ran.out.partition("Examples:\n")[2].splitlines()
    assert examples
    assert all(" ".join(["toolcrib", *words]) in line for line in examples)
    assert "─" not in ran.out


def test_the_version_is_the_installed_one(cli: Run) -> None:
    """`--version` prints name and version."""
    ran = cli("--version")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("toolcrib 0.")


def test_help_needs_neither_temporal_nor_pydantic() -> None:
    """What takes long to import is imported by the command that needs it."""
    script = (
        "import sys, toolcrib.client.cli; print([m for m in ('temporalio', 'pydantic', 'rich') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ([], "Missing command", "toolcrib --help"),
        (["fetch"], "No such command", "toolcrib --help"),
        (["submit", "x", "--tagg", "y"], "No such option: --tagg", "toolcrib submit --help"),
        (["status"], "Missing argument", "toolcrib status --help"),
        (["list", "--limit", "many"], "--limit", "toolcrib list --help"),
        (["list", "--limit", "0"], "--limit", "toolcrib list --help"),
        (["list", "-o", "xml"], "--output", "toolcrib list --help"),
        (["pool"], "Missing command", "toolcrib pool --help"),
        (["device", "drain"], "Missing argument", "toolcrib device drain --help"),
        (["device", "quarantine", "h/d"], "--reason", "toolcrib device quarantine --help"),
        (["pool", "create", "p", "--max-concurrent", "few"], "neither a number nor 'none'", "--help"),
        (["pool", "configure", "p"], "at least one setting", "--help"),
        (["submit", "x", "--input", "novalue"], "is not K=V", "--help"),
        (["submit", "x", "--input", "a=1", "--input", "a=2"], "given twice", "--help"),
        (["submit", "x", "--group-name", "Nightly"], "needs --group", "--help"),
        (["watch"], "give tasks, a group or a pool", "--help"),
        (["watch", "task-1", "--group", "g"], "only one of these", "--help"),
        (["cancel"], "give tasks or a group", "--help"),
        (["worker"], "--config FILE", "--help"),
        (["up", "--port", "70000"], "--port", "toolcrib up --help"),
    ],
)
def test_what_is_not_understood_is_told_in_two_lines(cli: Run, words: list[str], message: str, hint: str) -> None:
    """A wrong command line gives exit code 2, two plain lines on stderr and nothing on stdout."""
    ran = cli(*words)
    assert (ran.code, ran.out) == (2, "")
    what, then = ran.err.splitlines()
    assert what.startswith("error: ")
    assert message in what
    assert then.startswith("hint: See: toolcrib")
    assert hint in then


@pytest.mark.parametrize("option", [["-o", "json"], ["-ojson"], ["--output", "json"], ["--output=json"]])
def test_under_json_errors_are_json(cli: Run, option: list[str]) -> None:
    """With `-o json` in any spelling, errors are one JSON object, also those of the command line itself."""
    ran = cli(*option, "fetch")
    error = json.loads(ran.err)["error"]
    assert (ran.code, ran.out) == (2, "")
    assert set(error) == {"code", "message", "hint"}


def test_what_stands_after_two_dashes_is_no_option() -> None:
    """A goal that looks like an option does not change how errors look."""
    assert not wants_json(["submit", "--", "-o", "json"])
    assert wants_json(["submit", "x", "-o", "json"])


@pytest.mark.parametrize(
    ("error", "code", "exit_code"),
    [
        (QueueFull("the queue of pool 'default' is full (1000)"), "queue_full", 4),
        (UnknownPool.named("phones"), "unknown_pool", 4),
        (ToolcribError("two\nlines"), "unexpected", 1),
    ],
)
def test_errors_have_two_lines_and_an_exit_code(
    cli: Run, crib: FakeCrib, error: ToolcribError, code: str, exit_code: int
) -> None:
    """What is wrong, what to do next, and the exit code of its kind; the same as data under `-o json`."""
    crib.refusal = error
    ran = cli("submit", "echo hello")
    assert (ran.code, ran.out) == (exit_code, "")
    assert [line.partition(" ")[0] for line in ran.err.splitlines()] == ["error:", "hint:"]
    ran = cli("submit", "echo hello", "-o", "json")
    data = json.loads(ran.err)["error"]
    assert (ran.code, ran.out) == (exit_code, "")
    assert (data["code"], data["message"]) == (code, error.message)
    assert data["hint"]


def test_a_failed_call_is_told_as_an_error_of_ours(cli: Run, crib: FakeCrib) -> None:
    """Errors of Temporal's calls do not reach the user as they are."""
    from temporalio.service import RPCError, RPCStatusCode

    crib.refusal = RPCError("tcp connect error", RPCStatusCode.UNAVAILABLE, b"")
    ran = cli("submit", "echo hello")
    assert ran.code == 3
    assert ran.err.startswith("error: the Temporal server cannot be reached: tcp connect error\nhint: ")


@pytest.mark.parametrize("words", [["--address", "given:1", "strategies"], ["strategies", "--address", "given:1"]])
def test_connection_options_may_stand_before_or_after_the_command(
    cli: Run, connections: Connections, words: list[str]
) -> None:
    """Address and namespace are understood in both places."""
    assert cli("--namespace", "lab", *words).code == 0
    assert connections == [("given:1", "lab", None)]


def test_the_last_word_wins(cli: Run, connections: Connections) -> None:
    """Options after the command win over those before it."""
    cli("--address", "first:1", "strategies", "--address", "second:2")
    assert connections[0][0] == "second:2"


def test_an_unexpected_error_is_one_line_and_a_hint() -> None:
    """Not even a fault of toolcrib's own shows a traceback, unless asked to."""
    ran = _in_a_process("strategies", body="raise KeyError('oops')")
    assert ran.returncode == 1
    assert ran.stderr == (
        "error: unexpected KeyError: 'oops'\nhint: See where it comes from: set TOOLCRIB_DEBUG=1 and run it again\n"
    )
    assert json.loads(_in_a_process("strategies", "-ojson", body="raise KeyError('oops')").stderr)["error"]
    ran = _in_a_process("strategies", body="raise KeyError('oops')", variables={"TOOLCRIB_DEBUG": "1"})
    assert ran.returncode == 1
    assert ran.stderr.startswith("Traceback")


@pytest.mark.parametrize("words", [["strategies"], ["strategies", "-ojson"], ["submit", "--help"], ["pool", "show"]])
def test_a_reader_that_has_gone_is_no_failure(words: list[str]) -> None:
    """`toolcrib ... | head -1` ends without a word."""
    reading, writing = os.pipe()
    os.close(reading)
    ran = _in_a_process(*words, stdout=writing)
    os.close(writing)
    assert ran.stderr == ""
    assert ran.returncode in {0, 1}


@pytest.mark.parametrize("variables", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "latin-1"}])
def test_any_name_survives_any_terminal(variables: dict[str, str]) -> None:
    """What the terminal cannot show is written as escapes, and JSON stays JSON."""
    body = (
        "from support.fake_crib import FakeHandle, task_view; crib = FakeCrib(); "
        "crib.add(FakeHandle('task-1', [task_view(name='caf\\u00e9 \\u5ba2\\u5385')])); return crib"
    )
    ran = _in_a_process("list", body=body, variables=variables)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "caf" in ran.stdout
    ran = _in_a_process("list", "-ojson", body=body, variables=variables)
    assert json.loads(ran.stdout)[0]["name"].startswith("caf")


def test_an_interrupted_command_says_so_by_its_code(cli: Run, crib: FakeCrib) -> None:
    """Ctrl-C gives exit code 130 and no traceback."""
    from support.fake_crib import task_view

    crib.add(FakeHandle("task-1", [task_view()], interrupts=True))
    ran = cli("watch", "task-1")
    assert ran.code == 130
    assert "Traceback" not in ran.err


MAIN = "from toolcrib.client.cli import main; main()"


def test_a_reader_of_help_that_has_gone_is_no_error() -> None:
    """`toolcrib --help | true` ends with 0, without a word."""
    script = (
        f"{sys.executable} -c 'from toolcrib.client.cli import main; main()' --help | true; exit ${{PIPESTATUS[0]}}"
    )
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_output_that_cannot_be_written_is_an_error_in_two_lines() -> None:
    """As on a disk that is full."""
    script = f"{sys.executable} -c '{MAIN}' --help > /dev/full"
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.splitlines() == [
        "error: the output could not be written: No space left on device",
        "hint: Write it elsewhere; what was ordered was done.",
    ]


def test_libraries_log_nothing_beside_an_error() -> None:
    """Standard error has the two lines of the error, standard output nothing, unless TOOLCRIB_DEBUG is set."""
    body = (
        "import logging, structlog; structlog.get_logger('toolcrib').warning('not delivered'); "
        "logging.getLogger('temporalio').error('refused'); "
        "from toolcrib.client import QueueFull; raise QueueFull('the queue is full')"
    )
    ran = _in_a_process("list", body=body)
    assert (ran.returncode, ran.stdout) == (4, "")
    assert [line.partition(": ")[0] for line in ran.stderr.splitlines()] == ["error", "hint"]
    ran = _in_a_process("list", "-ojson", body=body)
    assert (ran.stdout, json.loads(ran.stderr)["error"]["code"]) == ("", "queue_full")
    ran = _in_a_process("list", body=body, variables={"TOOLCRIB_DEBUG": "1"})
    assert "not delivered" in ran.stdout + ran.stderr

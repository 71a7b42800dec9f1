"""`toolcrib submit`: what it submits, what it writes, and how it waits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.fake_crib import FakeCrib, FakeHandle, task_view
from toolcrib.client import Group

if TYPE_CHECKING:
    from support.cli import Connections, Run

pytest_plugins = ["support.cli"]

ATTEMPT: dict[str, Any] = {"attempt": 1, "host_id": "lab", "device_id": "slot-1"}
QUEUED = task_view(pending_reason={"code": "all_busy", "text": "both devices that fit are leased"})
RUNNING = task_view(status="dispatched", progress=0.4, message="half way", **ATTEMPT)
DONE = task_view(status="done", result={"exit_code": 0, "output": "hello\n", "omitted_bytes": 0}, **ATTEMPT)
FAILED = task_view(
    status="failed",
    error={"code": "exit_code", "message": "the command ended with 3", "hint": None},
    result={"exit_code": 3, "output": "no such file\n", "omitted_bytes": 0},
    **ATTEMPT,
)
CANCELLED = task_view(status="cancelled")


@pytest.fixture
def task(crib: FakeCrib) -> FakeHandle:
    """The task that a submission gives."""
    return crib.add(FakeHandle("task-1", [QUEUED]))


@pytest.mark.usefixtures("task")
def test_stdout_is_the_id_alone(cli: Run) -> None:
    """A script can take the id from stdout as it is."""
    ran = cli("submit", "echo hello")
    assert (ran.code, ran.out, ran.err) == (0, "task-1\n", "")


@pytest.mark.usefixtures("task")
def test_under_json_it_is_the_task(cli: Run) -> None:
    """With `-o json` stdout is one TaskView."""
    ran = cli("submit", "echo hello", "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out) == QUEUED.model_dump(mode="json")


def test_an_id_is_not_lost_when_the_state_cannot_be_read(cli: Run, crib: FakeCrib) -> None:
    """If the state cannot be read under `-o json`, the id of what was submitted is told all the same."""
    crib.add(FakeHandle("task-1"))
    ran = cli("submit", "echo hello", "-o", "json")
    assert (ran.code, ran.out) == (8, "")
    assert "submitted as task-1" in ran.err


@pytest.mark.usefixtures("task")
def test_every_option_reaches_the_request(cli: Run, crib: FakeCrib, connections: Connections) -> None:
    """Options become the fields of the same name; durations become seconds, repeated tags stay apart."""
    words = (
        "--workflow login@2 --input user=ann --input url=a=b --inputs {"
        '"user":"bob","n":1} --name Login --driver-type browser --tag chrome --tag lab --device-id d1 --host-id h1 '
        "--priority 1 --pool phones --group g1 --group-name Nightly --key k1 --timeout 1h30m --queue-timeout PT5M "
        "--max-attempts 2"
    )
    assert cli("submit", *words.split()).code == 0
    assert connections == [(None, None, "phones")]
    assert crib.submitted == [
        {
            "goal": None,
            "workflow": "login@2",
            "inputs": {"user": "ann", "n": 1, "url": "a=b"},
            "name": "Login",
            "driver_type": "browser",
            "tags": ("chrome", "lab"),
            "device_id": "d1",
            "host_id": "h1",
            "priority": 1,
            "pool": "phones",
            "group": Group(id="g1", name="Nightly"),
            "key": "k1",
            "timeout": 5400.0,
            "queue_timeout": 300.0,
            "max_attempts": 2,
        }
    ]


@pytest.mark.usefixtures("task")
@pytest.mark.parametrize(
    ("stdin", "goal"),
    [(b"echo one\necho two\n", "echo one\necho two"), ("echo caf\u00e9".encode(), "echo caf\u00e9"), (b"", "")],
)
def test_a_dash_reads_the_goal_from_stdin(cli: Run, crib: FakeCrib, stdin: bytes, goal: str) -> None:
    """`-` takes the goal from stdin, as UTF-8, without its last line break."""
    assert cli("submit", "-", stdin=stdin).code == 0
    assert crib.submitted[0]["goal"] == goal


@pytest.mark.usefixtures("task")
def test_a_goal_may_look_like_an_option(cli: Run, crib: FakeCrib) -> None:
    """What stands after `--` is the goal."""
    assert cli("submit", "--", "--wait").code == 0
    assert crib.submitted[0]["goal"] == "--wait"


@pytest.mark.usefixtures("task")
def test_inputs_may_be_in_a_file(cli: Run, crib: FakeCrib, tmp_path: Path) -> None:
    """`@FILE` takes the inputs from a file; a byte order mark does no harm."""
    file = tmp_path / "inputs.json"
    file.write_bytes(b'\xef\xbb\xbf{"url": "caf\xc3\xa9"}')
    assert cli("submit", "--workflow", "w", "--inputs", f"@{file}").code == 0
    assert crib.submitted[0]["inputs"] == {"url": "caf\u00e9"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--inputs", "{"], "inputs: is not JSON"),
        (["--inputs", "[1]"], "inputs: is not a JSON object"),
        (["--inputs", '{"a": 1, "a": 2}'], "'a' stands twice"),
        (["--inputs", '{"a":' * 100_000 + "1" + "}" * 100_000], "nested too deep"),
        (["--inputs", "@/no/such/file"], "cannot read '/no/such/file': No such file"),
        (["--inputs", "@/"], "cannot read '/': Is a directory"),
        (["--inputs", "@/dev/zero"], "longer than"),
        (["--timeout", "soon"], "timeout: 'soon' is not a duration"),
        (["--queue-timeout", ""], "queue_timeout: '' is not a duration"),
    ],
)
def test_malformed_content_is_refused_before_connecting(
    cli: Run, connections: Connections, words: list[str], message: str
) -> None:
    """Content that is wrong gives exit code 4 and names the field; no server is needed to say so."""
    ran = cli("submit", "--workflow", "w", *words)
    assert (ran.code, ran.out, connections) == (4, "", [])
    assert message in ran.err
    assert len(ran.err.splitlines()) == 2


def test_a_goal_that_is_not_utf8_is_refused(cli: Run) -> None:
    """Bytes on stdin that are no text are refused with their place."""
    ran = cli("submit", "-", stdin=b"echo \xff")
    assert ran.code == 4
    assert "goal: is not UTF-8 at byte 5" in ran.err


@pytest.mark.usefixtures("task")
def test_a_tag_with_a_comma_gets_a_note(cli: Run, crib: FakeCrib) -> None:
    """Tags are never split, and who seems to expect it is told so."""
    ran = cli("submit", "x", "--tag", "pixel, android-14")
    assert (ran.code, ran.out) == (0, "task-1\n")
    assert crib.submitted[0]["tags"] == ("pixel, android-14",)
    assert "tags are not split at commas" in ran.err


@pytest.mark.parametrize(("last", "code"), [(DONE, 0), (FAILED, 5), (CANCELLED, 6)])
def test_wait_exits_by_the_outcome(cli: Run, crib: FakeCrib, last: Any, code: int) -> None:
    """`--wait` prints the id first, tells each change on stderr, and ends with the outcome's exit code."""
    crib.add(FakeHandle("task-1", [QUEUED, RUNNING, RUNNING, last]))
    ran = cli("submit", "echo hello", "--wait")
    assert (ran.code, ran.out) == (code, "task-1\n")
    lines = ran.err.splitlines()
    assert lines[:2] == ["queued: both devices that fit are leased", "dispatched on lab/slot-1 40% half way"]
    assert lines[2] == f"echo hello: {last.status} after 1m05s"


def test_wait_shows_what_the_work_wrote(cli: Run, crib: FakeCrib) -> None:
    """A person sees the output, and of a failure why, and what to type next."""
    handle = crib.add(FakeHandle("task-1", [DONE]))
    assert cli("submit", "echo hello", "--wait").err.splitlines()[1:] == ["hello"]
    handle.views = [FAILED]
    assert cli("submit", "echo hello", "--wait").err.splitlines()[1:] == [
        "no such file",
        "error: the command ended with 3",
        "hint: See: toolcrib status task-1",
    ]


@pytest.mark.parametrize(("last", "code"), [(DONE, 0), (FAILED, 5), (CANCELLED, 6)])
def test_wait_under_json_gives_one_final_task(cli: Run, crib: FakeCrib, last: Any, code: int) -> None:
    """Under `-o json` stdout has one TaskView, the last; a failure's error is on stderr as well."""
    crib.add(FakeHandle("task-1", [RUNNING, last]))
    ran = cli("submit", "echo hello", "--wait", "-o", "json")
    assert ran.code == code
    assert json.loads(ran.out) == last.model_dump(mode="json")
    assert (code == 0) or json.loads(ran.err.splitlines()[-1])["error"]["code"] in {"exit_code", "task_cancelled"}


def test_interrupting_the_wait_detaches(cli: Run, crib: FakeCrib) -> None:
    """Ctrl-C while waiting leaves the task alone, says so with its id, and exits 130."""
    handle = crib.add(FakeHandle("task-1", [RUNNING], interrupts=True))
    ran = cli("submit", "echo hello", "--wait", "-o", "json")
    assert ran.code == 130
    assert not handle.cancelled
    assert "detached: task task-1 goes on" in ran.err


@pytest.mark.parametrize(("words", "said"), [([], "none were given"), (["x", "--workflow", "y"], "both were given")])
def test_a_goal_or_a_workflow_is_needed(cli: Run, crib: FakeCrib, words: list[str], said: str) -> None:
    """Neither or both is refused before anything is sent, in words that this command line has."""
    ran = cli("submit", *words)
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.startswith(f"error: goal, workflow: give exactly one of them; {said}\nhint: ")
    assert crib.submitted == []

"""The command line as a process, against a server, scheduler and host that are real."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.processes import without_waiting
from toolcrib.worker.embedded import EmbeddedServer

pytest_plugins = ["support.cli"]

COMMAND = [sys.executable, "-c", "from toolcrib.client.cli import main; main()"]
LIMIT = 60.0
"""Seconds within which a command must have ended, on a busy machine."""


def _environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "TOOLCRIB_"))}
    return {**kept, **variables}


def _toolcrib(
    environment: Mapping[str, str], *words: str, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    ran = _ran(environment, *words, stdin=stdin)
    ran.stderr = without_waiting(ran.stderr)
    return ran


def _ran(environment: Mapping[str, str], *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words], input=stdin, capture_output=True, text=True, env=environment, timeout=LIMIT, check=False
    )


@contextmanager
def _started(command: list[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process whose output is read by the test, and which does not outlive it."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _json(environment: Mapping[str, str], *words: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(_toolcrib(environment, *words, "-o", "json").stdout)
    return found


@pytest.fixture(scope="module")
def crib(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """`toolcrib up` with two slots; gives the environment in which commands find it."""
    folder = tmp_path_factory.mktemp("up")
    own = {
        "TOOLCRIB_HOME": str(folder / "home"),
        "TOOLCRIB_LOCKS": str(folder / "locks"),
        "XDG_CONFIG_HOME": str(folder),
    }
    with (
        (folder / "up.log").open("wb") as log,
        subprocess.Popen(
            [*COMMAND, "up", "--port", "0", "--ui-port", "0", "--devices", "2"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=_environment(**own),
        ) as up,
    ):
        assert up.stdout
        ready = up.stdout.readline()
        address = dict(word.split("=", 1) for word in ready.split()[1:]).get("address")
        assert address, (folder / "up.log").read_text()
        yield _environment(**own, TEMPORAL_ADDRESS=address)
        up.send_signal(signal.SIGTERM)
        assert up.wait(LIMIT) == 0, (folder / "up.log").read_text()


def test_doctor_finds_everything_in_order(crib: dict[str, str]) -> None:
    """Where toolcrib works, every line is ok and the exit code 0."""
    ran = _toolcrib(crib, "doctor")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    names = [line.split()[0] for line in ran.stdout.splitlines()]
    assert names == ["ok"] * 5
    assert _json(crib, "doctor")["usable"] is True


@pytest.mark.parametrize(
    ("goal", "code", "status"), [("echo hello", 0, "done"), ("echo oops >&2; exit 3", 5, "failed")]
)
def test_a_task_runs_and_its_outcome_is_the_exit_code(crib: dict[str, str], goal: str, code: int, status: str) -> None:
    """The id is on stdout, the output on stderr, and `status` has the same outcome."""
    ran = _toolcrib(crib, "submit", "-", "--wait", stdin=goal)
    assert ran.returncode == code, ran.stderr
    assert goal.split(";")[0].split()[1] in ran.stderr
    view = _json(crib, "status", ran.stdout.strip())
    assert (view["status"], view["goal"]) == (status, goal)


def test_a_task_that_nothing_fits_waits_and_can_be_cancelled(crib: dict[str, str]) -> None:
    """`status` says why it waits; cancelled, it ends at once, and waiting for it gives exit code 6."""
    task_id = _toolcrib(crib, "submit", "true", "--tag", "nowhere", "--key", "waits").stdout.strip()
    assert task_id == "task-waits"
    assert "nowhere" in _toolcrib(crib, "status", task_id).stdout
    assert _toolcrib(crib, "cancel", task_id).stdout == "task-waits\n"
    ran = _toolcrib(crib, "watch", task_id)
    assert (ran.returncode, ran.stdout) == (0, "task-waits  true: cancelled\n")
    assert _toolcrib(crib, "submit", "true", "--tag", "nowhere", "--key", "waits", "--wait").returncode == 6


def test_a_task_that_ended_cannot_be_cancelled(crib: dict[str, str]) -> None:
    """Cancelling it is refused, in two lines, and changes nothing."""
    task_id = _toolcrib(crib, "submit", "true", "--wait").stdout.strip()
    ran = _toolcrib(crib, "cancel", task_id)
    assert (ran.returncode, ran.stdout) == (4, "")
    assert len(ran.stderr.splitlines()) == 2
    assert _json(crib, "status", task_id)["status"] == "done"


@pytest.mark.usefixtures("ctrl_c_heard")
def test_ctrl_c_while_waiting_leaves_the_task_alone(crib: dict[str, str]) -> None:
    """The wait ends with exit code 130 and says how to go on; the task goes on."""
    command = [*COMMAND, "submit", "true", "--tag", "nowhere", "--wait"]
    with _started(command, crib) as waiting:
        assert waiting.stdout
        assert waiting.stderr
        task_id = waiting.stdout.readline().strip()
        while not (said := waiting.stderr.readline()).startswith("queued"):
            assert without_waiting(said) == ""
        waiting.send_signal(signal.SIGINT)
        _, said = waiting.communicate(timeout=LIMIT)
    assert waiting.returncode == 130
    assert said == f"detached: task {task_id} goes on; see: toolcrib watch {task_id}\n"
    assert _json(crib, "status", task_id)["status"] == "queued"
    assert _toolcrib(crib, "cancel", task_id).returncode == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["status", "task-nope"], 8),
        (["cancel", "task-nope"], 8),
        (["watch", "task-nope"], 8),
        (["submit", " "], 4),
        (["submit", "true", "--priority", "9"], 4),
        (["submit", "true", "--pool", "nope"], 4),
        (["pool", "show", "nope"], 4),
        (["pool", "create", "other", "--strategy", "nope"], 4),
        (["pool", "configure", "default", "--lease-ttl", "1s"], 4),
    ],
)
def test_refusals_have_two_lines_and_their_exit_code(crib: dict[str, str], words: list[str], code: int) -> None:
    """What the crib refuses comes out as an exit code by kind, nothing on stdout, two lines on stderr."""
    ran = _toolcrib(crib, *words)
    assert (ran.returncode, ran.stdout) == (code, ""), ran.stderr
    assert [line.split()[0] for line in ran.stderr.splitlines()] == ["error:", "hint:"]


def test_every_command_ends_by_itself(crib: dict[str, str]) -> None:
    """A command neither aborts nor hangs when it ends, however often it runs."""
    for _ in range(15):
        ran = _toolcrib(crib, "status", "task-nope")
        assert ran.returncode == 8, ran.stderr


def test_the_pool_is_shown_and_configured(crib: dict[str, str]) -> None:
    """What is configured is what is shown; `assign` is no error when there is nothing to assign."""
    assert _toolcrib(crib, "pool", "configure", "default", "--max-queue-depth", "77").returncode == 0
    view = _json(crib, "pool", "show")
    assert view["max_queue_depth"] == 77
    assert isinstance(view["devices"], list)
    assert len(view["devices"]) == 2
    assert _toolcrib(crib, "pool", "assign").stdout == "0\n"
    assert "fifo_match" in _toolcrib(crib, "strategies").stdout.splitlines()


def test_a_host_gets_its_key_and_is_enrolled_and_revoked(crib: dict[str, str]) -> None:
    """The public key is what keygen prints; enrolling twice is no error, another key is refused until it is revoked."""
    key = _toolcrib(crib, "host", "keygen", "bench-1")
    assert key.returncode == 0
    assert f"toolcrib host enroll bench-1 --public-key {key.stdout.strip()}" in key.stderr
    again = _toolcrib(crib, "host", "keygen", "bench-1")
    assert (again.returncode, len(again.stderr.splitlines())) == (4, 2)
    assert key.stdout.strip() in again.stderr
    for words in (["enroll", "bench-1"], ["enroll", "bench-1", "--public-key", key.stdout.strip()]):
        assert _toolcrib(crib, "host", *words).returncode == 0
    hosts = json.loads(_toolcrib(crib, "host", "list", "-o", "json").stdout)
    (host,) = [one for one in hosts if one["id"] == "bench-1"]
    assert (host["public_key"], host["state"], host["last_seen"]) == (key.stdout.strip(), "offline", None)
    other = json.loads(_toolcrib(crib, "host", "keygen", "bench-2", "-o", "json").stdout)["public_key"]
    refused = _toolcrib(crib, "host", "enroll", "bench-1", "--public-key", other)
    assert (refused.returncode, len(refused.stderr.splitlines())) == (4, 2)
    assert _toolcrib(crib, "host", "revoke", "bench-1").returncode == 0
    assert _toolcrib(crib, "host", "enroll", "bench-1", "--public-key", other).returncode == 0
    assert _toolcrib(crib, "host", "revoke", "nobody").returncode == 8
    assert _toolcrib(crib, "host", "enroll", "nobody").returncode == 4
    _toolcrib(crib, "host", "revoke", "bench-1")


def test_work_that_runs_elsewhere_is_driven_from_a_script(crib: dict[str, str]) -> None:
    """By the id that `start` prints; what comes after its end is refused, and an unknown id is not found."""
    task_id = _toolcrib(crib, "external", "start", "nightly backup", "--group", "backups").stdout.strip()
    assert _toolcrib(crib, "external", "progress", task_id, "40%", "copying").returncode == 0
    view = _json(crib, "status", task_id)
    assert (view["state"], view["progress"], view["message"]) == ("running", 0.4, "copying")
    assert _toolcrib(crib, "external", "progress", task_id, "1.4").returncode == 4
    assert _toolcrib(crib, "external", "complete", task_id, "--result", '{"files": 3}').returncode == 0
    view = _json(crib, "status", task_id)
    assert (view["state"], view["result"], view["group_id"]) == ("completed", {"files": 3}, "backups")
    for late in (["fail", task_id, "no"], ["progress", task_id, "0.5"], ["cancel", task_id]):
        refused = _toolcrib(crib, "external", *late)
        assert (refused.returncode, refused.stdout, len(refused.stderr.splitlines())) == (4, "", 2), late
    assert _toolcrib(crib, "external", "complete", "task-nobody").returncode == 8
    assert _toolcrib(crib, "external", "complete", task_id, "--result", "{").returncode == 4


def test_without_a_server_every_command_says_so(tmp_path: Path) -> None:
    """Exit code 3, the address that was tried, who named it, and what to do."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
        environment = _environment(XDG_CONFIG_HOME=str(tmp_path))
        ran = _toolcrib(environment, "list", "--address", address)
        assert (ran.returncode, ran.stdout) == (3, "")
        assert f"cannot connect to {address} (address as given; TLS off" in ran.stderr
        assert "toolcrib up" in ran.stderr
        ran = _toolcrib(environment, "doctor", "--address", address)
        assert ran.returncode == 3
        assert ran.stdout.startswith("problem  server: cannot connect to")


def test_a_silent_server_is_waited_for_audibly(tmp_path: Path) -> None:
    """Whoever waits for a connection is told after a few seconds what for."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        ran = _ran(_environment(XDG_CONFIG_HOME=str(tmp_path)), "list", "--address", address)
    assert ran.returncode == 3
    first, *rest = ran.stderr.splitlines()
    assert first == "waiting for the Temporal server to answer"
    assert len(rest) == 2


async def test_doctor_names_what_is_missing(server: EmbeddedServer, namespace: str, tmp_path: Path) -> None:
    """An unknown namespace and a missing scheduler are problems with what to type; exit code 3."""
    environment = _environment(XDG_CONFIG_HOME=str(tmp_path), TEMPORAL_ADDRESS=server.address)
    ran = _toolcrib(environment, "doctor", "--namespace", "nope")
    assert ran.returncode == 3
    assert "temporal operator namespace create --namespace nope" in ran.stdout
    ran = _toolcrib(environment, "doctor", "--namespace", namespace)
    assert ran.returncode == 3
    assert "problem  scheduler: none is running" in ran.stdout
    assert "problem  pool: there is no pool 'default'" in ran.stdout

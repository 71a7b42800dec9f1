"""`toolcrib logs` and `toolcrib artifacts`."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.fake_crib import FakeCrib, FakeHandle, task_view
from toolcrib.client.cli.app import run as run_command_line
from toolcrib.scheduling.errors import HostUnreachable, UnknownFile

if TYPE_CHECKING:
    from support.cli import Run

pytest_plugins = ["support.cli"]

DONE = task_view(status="done")


def test_logs_are_written_byte_by_byte(crib: FakeCrib, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was printed arrives as it was, whatever it was; of which attempt it is, and who is silent, is talk."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    crib.add(FakeHandle("task-1", [DONE], log=[b"\xff\x00one\r", b"\xc3"]))
    monkeypatch.setattr(sys, "stdout", out)
    assert run_command_line(["logs", "task-1"]) == 0
    assert out.buffer.getvalue() == b"\xff\x00one\r\xc3"
    monkeypatch.undo()


def test_what_is_asked_for_and_said(cli: Run, crib: FakeCrib) -> None:
    """By default the last attempt as it is now; the first one's number need not be told."""
    handle = crib.add(FakeHandle("task-1", [DONE], log=[b"one\n", b"two\n"]))
    ran = cli("logs", "task-1", "--follow", "--attempt", "2")
    assert (ran.code, ran.out) == (0, "one\ntwo\n")
    assert ran.err == "attempt 2 on lab/slot-1\nhost lab does not answer\n"
    assert cli("logs", "task-1").code == 0
    assert handle.asked == [(2, True), (None, False)]
    assert cli("logs", "task-1", "--attempt", "0").code == 2


def test_logs_as_json_are_text(cli: Run, crib: FakeCrib) -> None:
    """One object a piece, with its attempt; characters that are cut in two are whole, other bytes are replaced."""
    crib.add(FakeHandle("task-1", [DONE], log=[b"a\xc3", b"\xa9b\xff\xe2"]))
    ran = cli("logs", "task-1", "-o", "json")
    assert [json.loads(line) for line in ran.out.splitlines()] == [
        {"attempt": 1, "text": "a"},
        {"attempt": 1, "text": "\ufffd"},
        {"attempt": 2, "text": "\ufffdb\ufffd"},
        {"attempt": 2, "text": "\ufffd"},
    ]


def test_ends_of_logs(cli: Run, crib: FakeCrib) -> None:
    """Each has its exit code: no such task, Ctrl-C, a host that does not answer, a log that is gone."""
    assert cli("logs", "task-9").code == 8
    crib.add(FakeHandle("task-1", [DONE], log=[b"one\n"], interrupts=True))
    ran = cli("logs", "task-1", "--follow")
    assert (ran.code, ran.out, ran.err) == (130, "one\n", "")
    crib.add(FakeHandle("task-1", [DONE], log=[b"one\n"], refusal=HostUnreachable.named("lab")))
    ran = cli("logs", "task-1")
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (3, "one\n", 2)
    crib.add(FakeHandle("task-1", [DONE], refusal=UnknownFile("gone", hint="Look elsewhere")))
    ran = cli("logs", "task-1", "-o", "json")
    assert ran.code == 8
    assert json.loads(ran.err)["error"] == {"code": "unknown_file", "message": "gone", "hint": "Look elsewhere"}


def test_artifacts_are_listed(cli: Run, crib: FakeCrib) -> None:
    """As a table for people and an array for programs."""
    handle = crib.add(FakeHandle("task-1", [DONE], left={"a/b.txt": b"123", "c": b""}))
    assert cli("artifacts", "task-1").out == "BYTES  PATH\n3      a/b.txt\n0      c\n"
    as_json = cli("artifacts", "task-1", "-o", "json").out
    assert json.loads(as_json) == [{"path": "a/b.txt", "bytes": 3}, {"path": "c", "bytes": 0}]
    handle.left.clear()
    ran = cli("artifacts", "task-1")
    assert (ran.code, ran.out, ran.err) == (0, "", "no artifacts\n")
    assert cli("artifacts", "task-1", "-o", "json").out == "[]\n"


def test_an_artifact_is_fetched_whole_or_not_at_all(cli: Run, crib: FakeCrib, tmp_path: Path) -> None:
    """To standard output, or to a file, of which nothing is there until it is whole."""
    handle = crib.add(FakeHandle("task-1", [DONE], left={"a": b"one\n"}))
    assert cli("artifacts", "task-1", "--get", "a").out == "one\n"
    file = tmp_path / "file"
    assert cli("artifacts", "task-1", "--get", "a", "--to", str(file)).code == 0
    assert file.read_bytes() == b"one\n"

    file.unlink()
    handle.refusal = HostUnreachable.named("lab")
    assert cli("artifacts", "task-1", "--get", "a", "--to", str(file)).code == 3
    assert list(tmp_path.iterdir()) == []
    handle.refusal = None
    ran = cli("artifacts", "task-1", "--get", "a", "--to", str(tmp_path / "absent" / "file"))
    assert ran.code == 1
    assert ran.err.startswith("error: the output could not be written: No such file or directory\n")
    assert cli("artifacts", "task-1", "--to", str(file)).code == 2

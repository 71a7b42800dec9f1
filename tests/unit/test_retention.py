"""A host's disk does not fill up with what attempts have left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolcrib.activities.kept_files import BLOCK, KeptFiles
from toolcrib.activities.retention import Retention
from toolcrib.scheduling.keeping import Keep


def leave(files: KeptFiles, task_id: str, at: float, size: int = 0) -> None:
    """Let an attempt leave an empty log and one artifact."""
    files.logs.mkdir(parents=True, exist_ok=True)
    log, folder = files.logs / f"{task_id}.1", files.artifacts_of(task_id, 1)
    log.touch()
    folder.mkdir(parents=True)
    (folder / "a").write_bytes(b"x" * size)
    os.utime(log, (at, at))


def left(files: KeptFiles) -> list[str]:
    """Return the tasks that have a log, after a look that those and no others have artifacts."""
    tasks = sorted(name.removesuffix(".1") for name in files.names())
    assert sorted(folder.name for folder in files.artifacts.iterdir()) == tasks
    return tasks


def test_logs_and_artifacts_go_together(tmp_path: Path) -> None:
    """By age, and then the oldest until the rest is no more than allowed; other hosts of one home keep theirs."""
    files = KeptFiles(tmp_path, "h")
    for number, task in enumerate("abcde"):
        leave(files, task, at=number, size=100 * BLOCK)
    KeptFiles(tmp_path, "other").logs.mkdir(parents=True)
    (KeptFiles(tmp_path, "other").logs / "f.1").touch()

    retention = Retention(files, Keep(age=10, bytes=3 * 110 * BLOCK), lambda _: False)
    assert retention.sweep(now=10.5) == ["a.1", "b.1"]
    assert left(files) == ["c", "d", "e"]
    assert retention.sweep(now=10.5) == []
    assert retention.sweep(now=13.5) == ["c.1", "d.1"]
    leave(files, "g", at=13)
    assert retention.sweep(now=13.5) == []
    assert left(files) == ["e", "g"]
    assert KeptFiles(tmp_path, "other").names() == ["f.1"]


def test_an_open_lease_keeps_its_files(tmp_path: Path) -> None:
    """Also one that began after the sweep did; when it has ended it is measured anew, and may go."""
    files = KeptFiles(tmp_path, "h")
    leave(files, "a", at=0, size=10 * BLOCK)
    leave(files, "b", at=0)
    opened: list[str] = ["a.1"]
    retention = Retention(files, Keep(bytes=12 * BLOCK), lambda name: name in opened)
    assert retention.sweep(now=1) == ["b.1"]
    (files.artifacts_of("a", 1) / "more").write_bytes(b"x" * 10 * BLOCK)
    opened.clear()
    assert retention.sweep(now=1) == ["a.1"]

    leave(files, "c", at=0)
    just_opened = iter([False, True])
    assert Retention(files, Keep(bytes=0), lambda _: next(just_opened)).sweep(now=1) == []
    assert left(files) == ["c"]


def test_what_cannot_be_deleted_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It holds up nothing else."""
    files = KeptFiles(tmp_path, "h")
    leave(files, "a", at=0)
    leave(files, "b", at=0)
    deep = files.artifacts_of("a", 1)
    for _ in range(150):
        deep /= "d"
    deep.mkdir(parents=True)
    retention = Retention(files, Keep(age=1), lambda _: False)
    assert retention.sweep(now=10) == ["b.1"]
    assert retention.sweep(now=10) == []
    assert capsys.readouterr().out.count("cannot be deleted") == 1

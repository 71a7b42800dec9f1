"""What hosts keep of attempts can be read by anyone who reaches the namespace, and nothing else of the host."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from toolcrib.activities import kept_files
from toolcrib.activities.kept_files import KeptFiles, listed
from toolcrib.scheduling.host_files import PIECE, Artifact, ArtifactsRequest, FileRequest

SECRET = b"secret"


@pytest.fixture
def files(tmp_path: Path) -> KeptFiles:
    """A host's files, with one attempt that has left something; beside them lies a secret."""
    (tmp_path / "secret").write_bytes(SECRET)
    (tmp_path / "home" / "keys").mkdir(parents=True)
    (tmp_path / "home" / "keys" / "h.pem").write_bytes(SECRET)
    files = KeptFiles(tmp_path / "home", "h")
    leave(files, "task-1", {"report/index.html": b"<p>", "result.bin": b"\xff\x00"})
    return files


def leave(files: KeptFiles, task_id: str, artifacts: dict[str, bytes], number: int = 1, log: bytes = b"out\n") -> Path:
    """Let an attempt leave a log and artifacts, and return the folder of these."""
    files.logs.mkdir(parents=True, exist_ok=True)
    (files.logs / files.name(task_id, number)).write_bytes(log)
    folder = files.artifacts_of(task_id, number)
    folder.mkdir(parents=True)
    for path, content in artifacts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def read(files: KeptFiles, artifact: str | None, task_id: str = "task-1", offset: int = 0) -> bytes | None:
    """Return a piece of a file, or None if the host says that it has none."""
    piece = files.read(FileRequest(task_id=task_id, attempt=1, artifact=artifact, offset=offset))
    return piece.data if piece.found else None


def paths(files: KeptFiles, task_id: str = "task-1") -> list[str]:
    """Return the paths of an attempt's artifacts."""
    return [one.path for one in files.listed(ArtifactsRequest(task_id=task_id, attempt=1)).artifacts]


def test_a_file_is_read_in_pieces(files: KeptFiles) -> None:
    """From any offset, up to 256 KiB at a time, with the size of the whole; behind the end there is nothing."""
    content = os.urandom(PIECE + 5)
    (files.logs / "task-1.1").write_bytes(content)
    first = files.read(FileRequest(task_id="task-1", attempt=1))
    assert (first.data, first.size) == (content[:PIECE], PIECE + 5)
    assert read(files, None, offset=PIECE) == content[PIECE:]
    assert read(files, None, offset=PIECE + 5) == read(files, None, offset=1 << 50) == b""
    assert read(files, "report/index.html", offset=1) == b"p>"
    assert read(files, None, offset=-3) == content[:PIECE]


@pytest.mark.parametrize(
    "path",
    [
        *("..", "../1/result.bin", "../../../keys/h.pem", "report/../result.bin", "report/../../../../keys/h.pem"),
        *("/etc/passwd", "//etc/passwd", "", ".", "./result.bin", "report//index.html", "report/index.html/"),
        *("report", "absent", "report/absent", "result.bin/x", "a\0b", "result.bin\0", "x" * 5_000, "~/secret"),
    ],
)
def test_no_path_leads_out_of_the_folder(files: KeptFiles, path: str) -> None:
    """A path is names with one slash between them; anything else names nothing."""
    assert read(files, path) is None


def test_no_link_leads_out_of_the_folder(files: KeptFiles, tmp_path: Path) -> None:
    """A work can leave links of every kind and place; none of them is followed, and none is listed."""
    folder = files.artifacts_of("task-1", 1)
    (folder / "file").symlink_to(tmp_path / "secret")
    (folder / "folder").symlink_to(tmp_path)
    (folder / "report" / "up").symlink_to("../../../..")
    (folder / "self").symlink_to("self")
    for path in ("file", "folder/secret", "report/up/secret", "report/up/keys/h.pem", "self"):
        assert read(files, path) is None
    assert paths(files) == ["report/index.html", "result.bin"]


def test_no_link_in_place_of_a_folder_is_followed(files: KeptFiles, tmp_path: Path) -> None:
    """A work can also replace the very folder that it was given, or that of its task."""
    outside = tmp_path / "outside" / "1"
    outside.mkdir(parents=True)
    (outside / "file").write_bytes(SECRET)
    files.artifacts_of("task-1", 1).rename(tmp_path / "away")
    files.artifacts_of("task-1", 1).symlink_to(outside)
    assert (read(files, "file"), paths(files)) == (None, [])
    (files.artifacts / "task-1" / "1").unlink()
    (files.artifacts / "task-1").rmdir()
    (files.artifacts / "task-1").symlink_to(outside.parent)
    assert (read(files, "file"), paths(files)) == (None, [])
    files.remove("task-1.1")
    assert (outside / "file").read_bytes() == SECRET


def test_only_regular_files_are_read(files: KeptFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe that nobody writes to holds nobody up; neither it nor a socket is listed."""
    folder = files.artifacts_of("task-1", 1)
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(folder)  # a socket's path has at most 107 bytes
        server.bind("socket")
        assert read(files, "pipe") is read(files, "socket") is None
        assert paths(files) == ["report/index.html", "result.bin"]


@pytest.mark.parametrize("task_id", ["../../keys", "a/b", ".", "..", "", ".hidden", "é", "x" * 900, "a\0b", "\udcff"])
def test_a_task_of_any_name_has_files_of_its_own(files: KeptFiles, task_id: str) -> None:
    """Whoever starts a task without our client may call it what they like."""
    folder = leave(files, task_id, {"a": b"1"})
    assert (read(files, None, task_id), read(files, "a", task_id)) == (b"out\n", b"1")
    assert folder.parent.parent == files.artifacts
    assert files.name(task_id, 1) in files.names()
    assert files.artifacts_of(task_id, 1) != files.artifacts_of(f"{task_id}.", 1) != files.artifacts_of("id-", 1)


def test_artifacts_are_listed_by_their_paths(files: KeptFiles) -> None:
    """In the order of the paths as texts, with their sizes, at any depth; names that are no UTF-8 are marked."""
    folder = leave(files, "task-2", {"b/c": b"22", "b-": b"1", "b.": b"1", "a": b"1"})
    (folder / os.fsdecode(b"z\xff")).write_bytes(b"")
    found = files.listed(ArtifactsRequest(task_id="task-2", attempt=1))
    expected = [("a", 1), ("b-", 1), ("b.", 1), ("b/c", 2), ("z\ufffd", 0)]
    assert [(one.path, one.bytes) for one in found.artifacts] == expected
    assert [path for path, _ in expected] == sorted(path for path, _ in expected)


def test_a_list_is_cut_and_can_be_continued(files: KeptFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 1,000 entries and 64 KiB; it says when there are more, and goes on behind any path."""
    folder = leave(files, "task-2", {f"{number:04}": b"" for number in range(7)})
    monkeypatch.setattr(kept_files, "MOST_LISTED", 3)
    seen: list[str] = []
    more = True
    while more:
        found = files.listed(ArtifactsRequest(task_id="task-2", attempt=1, after=seen[-1] if seen else ""))
        assert len(found.artifacts) <= 3
        seen += [one.path for one in found.artifacts]
        more = found.more
    assert seen == [f"{number:04}" for number in range(7)]
    short = listed(folder.parent, ["1"], longest=60)
    assert (short.artifacts, short.more) == ([Artifact(path="0000", bytes=0), Artifact(path="0001", bytes=0)], True)


def test_what_is_gone_is_said_to_be_gone(files: KeptFiles) -> None:
    """An attempt that was deleted, or never was, is told from one without artifacts."""
    leave(files, "task-2", {})
    assert files.listed(ArtifactsRequest(task_id="task-2", attempt=1)).found
    assert not files.listed(ArtifactsRequest(task_id="task-2", attempt=2)).found
    files.remove("task-2.1")
    assert not files.listed(ArtifactsRequest(task_id="task-2", attempt=1)).found
    assert read(files, None, "task-2") is None


def test_removing_follows_no_link(files: KeptFiles, tmp_path: Path) -> None:
    """What links point to stays; other attempts stay; folders that nobody may write to go."""
    leave(files, "task-1", {"kept": b""}, number=2)
    folder = files.artifacts_of("task-1", 1)
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "report" / "up").symlink_to("/")
    (folder / "report").chmod(0o500)
    files.remove("task-1.1")
    assert not folder.exists()
    assert files.names() == ["task-1.2"]
    assert (files.artifacts_of("task-1", 2) / "kept").exists()
    assert (tmp_path / "secret").read_bytes() == SECRET
    files.remove("task-1.2")
    files.remove("task-1.2")
    assert not (files.artifacts / "task-1").exists()

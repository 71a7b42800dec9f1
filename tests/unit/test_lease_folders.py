"""The files that leases get, and what is left of them."""

from __future__ import annotations

from pathlib import Path

from support.guarded import until
from toolcrib.activities.lease_folders import LeaseFolders
from toolcrib.scheduling.host_files import ArtifactsRequest, FileRequest
from toolcrib.scheduling.lease import Lease

LOG = FileRequest(task_id="task-1", attempt=1)


def lease(fencing: int = 7) -> Lease:
    """Return a lease of the first attempt."""
    return Lease(
        task_id="task-1",
        attempt=1,
        host_id="h",
        device_id="slot-1",
        fencing=fencing,
        assigned_at=0.0,
        claim_by=30.0,
        ttl=30.0,
    )


async def test_log_and_artifacts_outlive_the_lease(tmp_path: Path) -> None:
    """The folder of the work goes; an answer says whether there may be more, until what is kept is whole."""
    folders = LeaseFolders(tmp_path, "h")
    files = folders.make(lease())
    (files.work / "scratch").touch()
    (files.artifacts / "kept").touch()
    assert (folders.read(LOG).found, folders.read(LOG).open) == (True, True)
    files.log.line("said")
    folders.tidy(lease())
    await folders.settled()
    assert folders.ended.is_set()
    assert not files.work.exists()
    found = folders.read(LOG)
    assert (found.data, found.open) == (b"said\n", False)
    listed = folders.listed(ArtifactsRequest(task_id="task-1", attempt=1))
    assert ([one.path for one in listed.artifacts], listed.open) == (["kept"], False)


async def test_no_folder_is_kept_without_artifacts(tmp_path: Path) -> None:
    """Only the log, which may be empty, tells of an attempt that left nothing."""
    folders = LeaseFolders(tmp_path, "h")
    folders.make(lease())
    folders.tidy(lease())
    await folders.settled()
    assert list((tmp_path / "artifacts").iterdir()) == []
    assert folders.read(LOG).found


async def test_an_attempt_begins_with_nothing(tmp_path: Path) -> None:
    """Another task may have had the same id: of its attempt of that number nothing is left, links included."""
    folders = LeaseFolders(tmp_path, "h")
    first = folders.make(lease())
    (first.artifacts / "old").touch()
    first.log.line("old")
    folders.tidy(lease())
    await folders.settled()
    second = folders.make(lease(8))
    assert list(second.artifacts.iterdir()) == []
    assert folders.read(LOG).data == b""
    second.artifacts.rmdir()
    second.artifacts.symlink_to(tmp_path)
    folders.tidy(lease(8))
    await folders.settled()
    third = folders.make(lease(9))
    assert not third.artifacts.is_symlink()
    assert folders.is_open("task-1.1")
    folders.tidy(lease(9))
    await until(lambda: not folders.is_open("task-1.1"))
    assert list((tmp_path / "hosts" / "h" / "leases").iterdir()) == []
    assert tmp_path.exists()

"""The files of leases: a folder to work in, which goes with the lease, and what is kept: artifacts and a log."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolcrib.activities.attempt_log import AttemptLog
from toolcrib.activities.beneath import folder_beneath, remove_beneath
from toolcrib.activities.kept_files import KeptFiles, file_name
from toolcrib.scheduling.host_files import ArtifactList, ArtifactsRequest, FilePiece, FileRequest
from toolcrib.scheduling.keeping import LOG_LIMIT
from toolcrib.scheduling.lease import Lease

SETTLED_WITHIN: Final = 2.0
"""Seconds that logs get to be written in when the host stops."""


@dataclass(frozen=True, kw_only=True)
class LeaseFiles:
    """What one lease has."""

    name: str
    """By which its attempt is known among what is kept."""
    work: Path
    """The folder to work in, empty."""
    artifacts: Path
    """The folder for what is to be kept, empty."""
    log: AttemptLog


class LeaseFolders:
    """The files of one host's leases."""

    def __init__(self, home: Path, host_id: str, *, log_limit: int = LOG_LIMIT) -> None:
        self.kept = KeptFiles(home, host_id)
        self.ended = asyncio.Event()
        """Set when a lease has ended, and what it leaves is whole."""
        self._leases = home / "hosts" / host_id / "leases"
        self._log_limit = log_limit
        self._beginning: list[str] = []
        self._open: dict[str, LeaseFiles] = {}
        self._tidying: set[asyncio.Task[None]] = set()

    def make(self, lease: Lease) -> LeaseFiles:
        """Create a lease's files.

        Raises:
            OSError: one cannot be created, or the lease had a folder before.
        """
        name = self.kept.name(lease.task_id, lease.attempt)
        work = self._leases / file_name(lease.id)
        artifacts = self.kept.artifacts_of(lease.task_id, lease.attempt)
        self._beginning.append(name)
        try:
            work.mkdir(parents=True)
            _emptied(artifacts, _of_another(work))
            log = _emptied_log(self.kept.logs / name, self._log_limit)
            self._open[lease.id] = files = LeaseFiles(name=name, work=work, artifacts=artifacts, log=log)
        finally:
            self._beginning.remove(name)
        return files

    def is_open(self, name: str) -> bool:
        """Return whether the lease of the attempt with that name has not ended."""
        return name in self._beginning or any(files.name == name for files in list(self._open.values()))

    def tidy(self, lease: Lease) -> None:
        """End the lease's log and delete its folder, beside the next work, since both may be large."""
        files = self._open[lease.id]
        files.log.close()
        tidying = asyncio.create_task(self._tidied(lease.id, files))
        self._tidying.add(tidying)
        tidying.add_done_callback(self._tidying.discard)

    def read(self, wanted: FileRequest) -> FilePiece:
        """Return the piece of a log or artifact that is asked for. Raises what `KeptFiles.read` raises."""
        is_open = self._is_open(wanted)  # first: what is then said of its end is true of what was read
        return self.kept.read(wanted).model_copy(update={"open": is_open})

    def listed(self, wanted: ArtifactsRequest) -> ArtifactList:
        """Return the artifacts of an attempt, as many as fit into an answer."""
        is_open = self._is_open(wanted)
        return self.kept.listed(wanted).model_copy(update={"open": is_open})

    async def settled(self) -> None:
        """Wait until what has ended is whole, for a bounded time."""
        if self._tidying:
            await asyncio.wait(self._tidying, timeout=SETTLED_WITHIN)

    async def clear(self) -> None:
        """Delete the folders of all leases: those of an earlier life."""
        await asyncio.to_thread(shutil.rmtree, self._leases, ignore_errors=True)

    async def _tidied(self, lease_id: str, files: LeaseFiles) -> None:
        await asyncio.wrap_future(files.log.ended)
        await asyncio.to_thread(_remove, files)
        del self._open[lease_id]
        self.ended.set()

    def _is_open(self, wanted: FileRequest | ArtifactsRequest) -> bool:
        return self.is_open(self.kept.name(wanted.task_id, wanted.attempt))


def _emptied(artifacts: Path, aside: Path) -> None:
    """Create the folder of an attempt's artifacts; what one of the same name has left goes `aside`.

    Another task may have had the same id, as that is free again when the namespace has forgotten it.
    """
    artifacts.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        artifacts.rename(aside)
    artifacts.mkdir()


def _emptied_log(file: Path, limit: int) -> AttemptLog:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    return AttemptLog(file, limit)


def _of_another(work: Path) -> Path:
    return work.with_name(f"{work.name}.another")


def _remove(files: LeaseFiles) -> None:
    """Delete a lease's folder, and that of its artifacts if there are none."""
    shutil.rmtree(files.work, ignore_errors=True)
    another = _of_another(files.work)
    with suppress(OSError), folder_beneath(another.parent, []) as leases:
        remove_beneath(leases, another.name)  # it may be a link
    with suppress(OSError):
        files.artifacts.rmdir()
        files.artifacts.parent.rmdir()

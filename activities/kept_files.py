"""What a host keeps of attempts when their leases are over: a log of each, and a folder of artifacts."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from toolcrib.activities.beneath import file_beneath, files_in, folder_beneath, remove_beneath
from toolcrib.scheduling.host_files import PIECE, Artifact, ArtifactList, ArtifactsRequest, FilePiece, FileRequest
from toolcrib.scheduling.keeping import KeptAttempt
from toolcrib.scheduling.sizes import KIB

MOST_LISTED: Final = 1_000
LONGEST_LIST: Final = 64 * KIB
"""Bytes of a list of artifacts, as JSON."""
BLOCK: Final = 4_096
"""Bytes that a file takes up at least, with its entry in a folder."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_:-][A-Za-z0-9._:-]{0,219}")


def file_name(task_id: str) -> str:
    """Return what the files of a task are called: its id, or a digest of one that cannot name a file."""
    if _PLAIN.fullmatch(task_id):
        return task_id
    return f"id-{hashlib.sha256(task_id.encode(errors='replace')).hexdigest()}"


class KeptFiles:
    """The logs and artifacts of one host's attempts; an attempt is named TASK.NUMBER."""

    def __init__(self, home: Path, host_id: str) -> None:
        self.logs = home / "hosts" / host_id / "logs"
        self.artifacts = home / "artifacts"

    def name(self, task_id: str, attempt: int) -> str:
        """Return the name of an attempt."""
        return f"{file_name(task_id)}.{attempt}"

    def artifacts_of(self, task_id: str, attempt: int) -> Path:
        """Return the folder of an attempt's artifacts."""
        return self.artifacts / file_name(task_id) / str(attempt)

    def read(self, wanted: FileRequest) -> FilePiece:
        """Return the piece that is asked for.

        Raises:
            OSError: it is there, and cannot be read.
        """
        name = self.name(wanted.task_id, wanted.attempt)
        place = (self.logs, [name])
        if wanted.artifact is not None:
            place = (self.artifacts, _parts(name, wanted.artifact))
        try:
            with file_beneath(*place) as file:
                return FilePiece(data=os.pread(file, PIECE, max(0, wanted.offset)), size=os.fstat(file).st_size)
        except FileNotFoundError:
            return FilePiece(found=False)

    def listed(self, wanted: ArtifactsRequest) -> ArtifactList:
        """Return the artifacts of an attempt, as many as fit into an answer."""
        name = self.name(wanted.task_id, wanted.attempt)
        if not (self.logs / name).exists():
            return ArtifactList(found=False)
        return listed(self.artifacts, _parts(name), after=wanted.after)

    def measured(self, name: str, *, is_open: bool) -> KeptAttempt:
        """Return how old and large an attempt is, whose lease may be open.

        Raises:
            OSError: it has just gone.
        """
        log = (self.logs / name).lstat()
        size = BLOCK + log.st_blocks * 512
        size += sum(BLOCK + found.st_blocks * 512 for _, found in _found(self.artifacts, _parts(name)))
        return KeptAttempt(name=name, ended_at=log.st_mtime, bytes=size, open=is_open)

    def names(self) -> list[str]:
        """Return the names of all attempts."""
        return [file.name for file in self.logs.iterdir()] if self.logs.is_dir() else []

    def remove(self, name: str) -> None:
        """Delete an attempt; its log last, by which it is known.

        Raises:
            OSError: something cannot be deleted.
        """
        task, number = _parts(name)
        with suppress(FileNotFoundError), folder_beneath(self.artifacts, [task]) as folder:
            remove_beneath(folder, number)
        with suppress(OSError):  # there may be other attempts of the task
            (self.artifacts / task).rmdir()
        (self.logs / name).unlink(missing_ok=True)


def listed(base: Path, parts: Sequence[str], *, after: str = "", longest: int = LONGEST_LIST) -> ArtifactList:
    """Return the regular files below a folder by their paths, up to 1,000 of them and `longest` bytes of JSON."""
    artifacts: list[Artifact] = []
    for path, found in _found(base, parts):
        shown = os.fsencode(path).decode(errors="replace")
        if shown <= after:
            continue
        longest -= len(json.dumps(shown)) + len('{"path":,"bytes":},') + len(str(found.st_size))
        if len(artifacts) == MOST_LISTED or longest < 0:
            return ArtifactList(artifacts=artifacts, more=True)
        artifacts.append(Artifact(path=shown, bytes=found.st_size))
    return ArtifactList(artifacts=artifacts)


def _found(base: Path, parts: Sequence[str]) -> Iterator[tuple[str, os.stat_result]]:
    try:
        with folder_beneath(base, parts) as folder:
            yield from files_in(folder)
    except FileNotFoundError:
        return


def _parts(name: str, artifact: str | None = None) -> list[str]:
    """Return the names on the way to an attempt's folder of artifacts, or to one of these."""
    task, _, number = name.rpartition(".")
    return [task, number, *([] if artifact is None else artifact.split("/"))]

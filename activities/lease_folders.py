"""The folders of leases: one to work in, which goes with the lease, and one for what is kept."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from toolcrib.scheduling.lease import Lease


class LeaseFolders:
    """The folders of one host's leases."""

    def __init__(self, home: Path, host_id: str) -> None:
        self._leases = home / "hosts" / host_id / "leases"
        self._artifacts = home / "artifacts"
        self._tidying: set[asyncio.Task[None]] = set()

    def make(self, lease: Lease) -> tuple[Path, Path]:
        """Create a lease's folder, empty, and the one of its artifacts, and return them.

        Raises:
            OSError: one cannot be created, or the lease had a folder before.
        """
        folder, artifacts = self._of(lease)
        folder.mkdir(parents=True)
        artifacts.mkdir(parents=True, exist_ok=True)
        return folder, artifacts

    def tidy(self, lease: Lease) -> None:
        """Delete the lease's folder beside the next work, since it may be large."""
        tidying = asyncio.create_task(asyncio.to_thread(_remove, *self._of(lease)))
        self._tidying.add(tidying)
        tidying.add_done_callback(self._tidying.discard)

    async def clear(self) -> None:
        """Delete the folders of all leases: those of an earlier life."""
        await asyncio.to_thread(shutil.rmtree, self._leases, ignore_errors=True)

    def _of(self, lease: Lease) -> tuple[Path, Path]:
        return self._leases / lease.id, self._artifacts / lease.task_id / str(lease.attempt)


def _remove(folder: Path, artifacts: Path) -> None:
    """Delete a lease's folder, and that of its artifacts if there are none."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        artifacts.rmdir()
        artifacts.parent.rmdir()
    except OSError:
        return

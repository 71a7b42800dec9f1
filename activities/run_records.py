"""Remembers on the disk which workflows run under leases of this host: who comes after a killed worker ends them."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path


class RunRecords:
    """Workflow ids, each in a file of its own; a name of its own would be too long for some."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def note(self, workflow_id: str) -> None:
        """Remember a workflow that is about to be started.

        Raises:
            OSError: it cannot be written down.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file(workflow_id).write_text(workflow_id, encoding="utf-8")

    def forget(self, workflow_id: str) -> None:
        """Forget a workflow that has ended."""
        self._file(workflow_id).unlink(missing_ok=True)

    def all(self) -> list[str]:
        """Return the workflows that may still run."""
        if not self._folder.is_dir():
            return []
        return [text for file in sorted(self._folder.iterdir()) if (text := file.read_text(encoding="utf-8"))]

    def _file(self, workflow_id: str) -> Path:
        return self._folder / sha256(workflow_id.encode()).hexdigest()

"""Keeps all that a step prints in a file of its task's artifacts."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final

import structlog

FOLDER: Final = "steps"

_log = structlog.get_logger(__name__)


class StepLog:
    """One stream of one attempt at a step. There is a file only if something was printed."""

    def __init__(self, artifacts: Path, name: str) -> None:
        self.name = f"{FOLDER}/{name}"
        """Below the artifacts."""
        self.written = False
        self._path = artifacts / FOLDER / name
        self._file: BinaryIO | None = None
        self._failed = False

    def __enter__(self) -> StepLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, printed: bytes) -> None:
        """Keep what was printed; what cannot be written, on a full disk, is lost to the log and stops nothing."""
        if self._failed:
            return
        try:
            if self._file is None:
                self._path.parent.mkdir(exist_ok=True)
                self._file = self._path.open("wb", buffering=0)
                self.written = True
            self._file.write(printed)
        except OSError as error:
            self._failed = True
            _log.error("output not kept", file=str(self._path), reason=str(error))

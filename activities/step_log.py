"""Keeps what a step prints in a file of its task's artifacts."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final

import structlog

from toolcrib.scheduling.keeping import LOG_LIMIT
from toolcrib.scheduling.sizes import size_text

FOLDER: Final = "steps"

_log = structlog.get_logger(__name__)


class StepLog:
    """One stream of one attempt at a step, up to a limit. There is a file only if something was printed."""

    def __init__(self, artifacts: Path, name: str, limit: int = LOG_LIMIT) -> None:
        self.name = f"{FOLDER}/{name}"
        """Below the artifacts."""
        self._limit = self._room = limit
        self._path = artifacts / FOLDER / name
        self._file: BinaryIO | None = None
        self._over = False

    @property
    def whole(self) -> bool:
        """Whether there is a file, which has all that was printed."""
        return self._file is not None and not self._over

    def __enter__(self) -> StepLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, printed: bytes) -> None:
        """Keep what was printed; what cannot be written, on a full disk, is lost to the log and stops nothing."""
        if self._over:
            return
        try:
            if self._file is None:
                self._path.parent.mkdir(exist_ok=True)
                self._file = self._path.open("wb", buffering=0)
            self._file.write(printed[: self._room])
            self._room -= len(printed)
            if self._room < 0:
                self._over = True
                self._file.write(f"\n[toolcrib: the limit of {size_text(self._limit)} is reached here]\n".encode())
        except OSError as error:
            self._over = True
            _log.error("output not kept", file=str(self._path), reason=str(error))

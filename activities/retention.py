"""Deletes what attempts have left when it is too old or too much; `scheduling.keeping` says what that is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog

from toolcrib.activities.kept_files import KeptFiles
from toolcrib.scheduling.keeping import Keep, KeptAttempt, outlived

_log: Final = structlog.get_logger(__name__)


class Retention:
    """What one host's attempts have left, as far as it has been measured; it is measured once, when they have ended."""

    def __init__(self, files: KeptFiles, keep: Keep, is_open: Callable[[str], bool]) -> None:
        self._files = files
        self._keep = keep
        self._is_open = is_open
        self._measured: dict[str, KeptAttempt] = {}
        self._undeletable: dict[str, None] = {}

    def sweep(self, now: float) -> list[str]:
        """Delete what goes, and return the names of its attempts. It may take long, and blocks."""
        # First the names, then which are open: what begins after that is none of these.
        found = [one for name in self._files.names() if (one := self._measure(name)) is not None]
        self._measured = {one.name: one for one in found if not one.open}
        gone = [name for name in outlived(found, self._keep, now) if name not in self._undeletable]
        return [name for name in gone if not self._is_open(name) and self._removed(name)]

    def _measure(self, name: str) -> KeptAttempt | None:
        is_open = self._is_open(name)
        if not is_open and name in self._measured:
            return self._measured[name]
        try:
            return self._files.measured(name, is_open=is_open)
        except OSError:
            return None  # it has just gone, or is none of ours

    def _removed(self, name: str) -> bool:
        try:
            self._files.remove(name)
        except OSError as error:
            _log.warning("what an attempt has left cannot be deleted", attempt=name, reason=str(error))
            self._undeletable[name] = None
            return False
        self._measured.pop(name, None)
        return True

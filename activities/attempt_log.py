"""The log of one attempt: a file that its output goes to as it comes, and that never keeps the work waiting."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from toolcrib.scheduling.sizes import KIB, MIB, size_text

TAIL: Final = 64 * KIB
"""Bytes of the end of an output beyond the limit that are kept."""
BEHIND: Final = 1 * MIB
"""Bytes that wait for the disk from which on whoever can had better write no more for a moment."""
MOST_WAITING: Final = 8 * MIB
"""Bytes that wait for the disk at most; what comes then is left out."""
APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC

_log = structlog.get_logger(__name__)


class LogCut:
    """Says what of an output its log has: all up to a limit, and of what follows the end."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._room = limit
        self._beyond = 0
        self._tail = b""

    def take(self, printed: bytes) -> bytes:
        """Return what of `printed` is to be written now; where the limit is reached it says so."""
        head, rest = printed[: self._room], printed[self._room :]
        self._room -= len(head)
        if not rest:
            return head
        said = b"" if self._beyond else _said(f"the log's limit of {size_text(self._limit)} is reached here")
        self._beyond += len(rest)
        self._tail = (self._tail + rest[-TAIL:])[-TAIL:]
        return head + said

    def end(self) -> bytes:
        """Return what is to be written when the output has ended."""
        omitted = self._beyond - len(self._tail)
        return (_said(f"{omitted:,} bytes are left out here") if omitted else b"") + self._tail


class AttemptLog:
    """Takes output from any thread, and writes it in one of its own. What the disk does not take is said to be missing.

    `ended` is done when it was closed and all of it is written.
    """

    def __init__(self, file: Path, limit: int) -> None:
        self.ended: Future[None] = Future()
        self._file = file
        self._cut = LogCut(limit)
        self._changed = threading.Condition()
        self._waiting: deque[bytes | int] = deque()
        self._held = 0
        self._closed = False
        self._thread: threading.Thread | None = None
        self._missing = 0
        self._reason = ""
        self._append(b"")  # so that an attempt that says nothing has a log

    @property
    def behind(self) -> bool:
        """Whether a lot waits for the disk."""
        return self._held > BEHIND

    def write(self, data: bytes) -> None:
        """Add to the log, which may be closed: then nothing happens. It neither waits nor raises."""
        with self._changed:
            if not self._closed:
                self._put(self._cut.take(data))

    def line(self, text: str) -> None:
        """Add a line."""
        self.write(text.encode(errors="replace") + b"\n")

    def close(self) -> None:
        """Take no more."""
        with self._changed:
            if self._closed:
                return
            self._put(self._cut.end())
            self._closed = True
            self._changed.notify()
        if self._thread is None:
            self._finish()

    def _put(self, data: bytes) -> None:
        if not data:
            return
        if self._held + len(data) <= MOST_WAITING:
            self._waiting.append(data)
            self._held += len(data)
        elif self._waiting and isinstance(self._waiting[-1], int):
            self._waiting[-1] += len(data)
        else:
            self._waiting.append(len(data))
        self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name=f"log {self._file.name}", daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        while parts := self._next():
            self._store(parts)
        self._finish()

    def _next(self) -> deque[bytes | int]:
        """Return what waits to be written, as soon as there is any; nothing at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            parts, self._waiting, self._held = self._waiting, deque(), 0
            return parts

    def _store(self, parts: Iterable[bytes | int]) -> None:
        for part in parts:
            if isinstance(part, int):
                self._lose(part, "the disk did not keep up")
            else:
                self._append(part)

    def _finish(self) -> None:
        if self._missing:
            self._append(b"")
        try:
            os.utime(self._file)  # its age counts from the end of the attempt
        except OSError as error:
            self._lose(0, str(error.strerror))
        self.ended.set_result(None)

    def _append(self, data: bytes) -> None:
        gap = _said(f"{self._missing:,} bytes are missing here: {self._reason}") if self._missing else b""
        written, fault = _appended(self._file, gap + data)
        if written >= len(gap):
            self._missing = 0
        if fault is not None:
            self._lose(len(data) - max(0, written - len(gap)), str(fault.strerror))

    def _lose(self, size: int, reason: str) -> None:
        if not self._reason:
            with suppress(OSError):  # our own messages may go to the same full disk
                _log.warning("a log is not whole; the work goes on", file=str(self._file), reason=reason)
        self._missing += size
        self._reason = reason


def _appended(file: Path, data: bytes) -> tuple[int, OSError | None]:
    """Write `data` at the end of `file`, and return how much of it, and why not all."""
    written = 0
    try:
        end = os.open(file, APPEND, 0o600)
        try:
            while written < len(data):
                written += os.write(end, data[written:])
        finally:
            os.close(end)
    except OSError as error:
        return written, error
    return written, None


def _said(what: str) -> bytes:
    return f"\n[toolcrib: {what}]\n".encode()

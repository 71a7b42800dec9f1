"""Reads what a command prints: all of it, at once, and remembers only the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from types import TracebackType
from typing import Final

from toolcrib.activities.context import Log
from toolcrib.activities.runners.progress_lines import ProgressLines

KEPT_BYTES: Final = 8 * 1024
_CHUNK = 1 << 16
PAUSE: Final = 0.005
PATIENCE: Final = 0.5
"""Seconds for which a command may wait until its log is written, before that has to do without."""


class Output:
    """A pipe for the output of a command, read as fast as it is written, so that the command never waits for a reader.

    Use it as a context manager, within a running loop. What `lines` takes out is not remembered.
    """

    def __init__(
        self, lines: ProgressLines, *, kept: int = KEPT_BYTES, log: Callable[[bytes], object] | None = None
    ) -> None:
        """`kept` bytes are remembered; `log` gets all of it, piece by piece."""
        self._lines = lines
        self._limit = kept
        self._log = log
        self._tail = b""
        self._seen = 0
        self._read_end, self._write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self._write_end, True)
        self._ended = asyncio.Event()
        self._attempt_log: Log | None = None
        self._paused = 0.0
        self._pause: asyncio.TimerHandle | None = None

    def __enter__(self) -> Output:
        asyncio.get_running_loop().add_reader(self._read_end, self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.handed_over()
        asyncio.get_running_loop().remove_reader(self._read_end)
        if self._pause is not None:
            self._pause.cancel()
        os.close(self._read_end)

    def log_to(self, log: Log) -> None:
        """Have what is printed from now on in the attempt's log as well, without what `lines` takes out."""
        self._attempt_log = log

    @property
    def fd(self) -> int:
        """The end that the command writes to, until it is handed over."""
        return self._write_end

    def handed_over(self) -> None:
        """Close this process's copy of the command's end: the output ends when the command's copies are closed."""
        if self._write_end >= 0:
            os.close(self._write_end)
            self._write_end = -1

    async def drain(self, seconds: float) -> None:
        """Wait for the end of the output, but no longer than `seconds`: a stranger may hold the pipe open."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        self._remember(self._lines.rest())

    @property
    def text(self) -> str:
        """The end of it, beginning with a whole character; what is not UTF-8 is replaced."""
        return self._kept.decode(errors="replace")

    @property
    def omitted_bytes(self) -> int:
        """How many bytes were printed before `text`."""
        return self._seen - len(self._kept)

    @property
    def _kept(self) -> bytes:
        if self._seen == len(self._tail):
            return self._tail
        border = 0
        while border < 3 and self._tail[border] & 0xC0 == 0x80:  # a byte within a character
            border += 1
        return self._tail[border:]

    def _take(self) -> None:
        chunk = os.read(self._read_end, _CHUNK)
        if not chunk:
            asyncio.get_running_loop().remove_reader(self._read_end)
            self._ended.set()
        self._remember(self._lines.take(chunk))
        if chunk and self._attempt_log is not None:
            self._keep_pace(self._attempt_log)

    def _keep_pace(self, log: Log) -> None:
        """Read no more for a moment while a lot waits for the disk; but a disk that hangs must not hold up the work."""
        loop = asyncio.get_running_loop()
        if not log.behind:
            self._paused = 0.0
        elif self._paused < PATIENCE:
            loop.remove_reader(self._read_end)
            self._pause = loop.call_later(PAUSE, self._go_on, log)

    def _go_on(self, log: Log) -> None:
        self._paused += PAUSE
        asyncio.get_running_loop().add_reader(self._read_end, self._take)
        self._keep_pace(log)

    def _remember(self, printed: bytes) -> None:
        if self._attempt_log is not None:
            self._attempt_log.write(printed)
        self._seen += len(printed)
        self._tail = (self._tail + printed)[-self._limit :]
        if self._log is not None and printed:
            self._log(printed)

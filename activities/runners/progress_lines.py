"""Finds in what a command prints how far it is: lines of their own, and percentages that are redrawn.

What a command prints may be anything, and a lot: nothing here raises, and nothing keeps more than one short line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.progress import parse_progress
from toolcrib.scheduling.quoting import shown

MARK: Final = b"::toolcrib "
MAX_LINE: Final = 4_096
"""Bytes, with the mark and the end of the line; a longer line is none of ours."""

_LINE: Final = re.compile(rb"(?<=\n)::toolcrib ([^\n]{0,%d})\n" % (MAX_LINE - len(MARK) - 1))
_PROGRESS: Final = re.compile(r"progress\s+(\S+)(?:\s+(.*))?")
_PERCENT: Final = re.compile(rb"(?<![\d.])(\d{1,3}(?:\.\d+)?) ?%")
_REMEMBERED: Final = 256
_LOOKED_AT: Final = 4_096
"""Of what was printed at once, the last bytes in which a percentage is looked for."""

Report = Callable[[float, str | None], None]


class ProgressLines:
    """Takes the lines that are meant for toolcrib out of a command's output, and reports what they say."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._redraws: Redraws | None = None
        self._before = b"\n"
        """The last byte that was let through: a line of ours begins after the end of another."""
        self._held = b""
        """The begin of what may become a line of ours."""

    def take(self, printed: bytes) -> bytes:
        """Return what is left to be kept of all that was printed up to now and not returned yet."""
        text = self._before + self._held + printed
        begin = text.rfind(b"\n") + 1
        rest = text[begin:]
        self._held = rest if begin and _may_become_ours(rest) else b""
        text = text[: len(text) - len(self._held)]
        if MARK in text:
            text = _LINE.sub(self._obeyed, text)
        self._before = text[-1:]
        if self._redraws is not None:
            self._redraws.look(text[1:])
        return text[1:]

    def rest(self) -> bytes:
        """Return what is left when the output has ended: a last line may lack its end."""
        if self._held.startswith(MARK):
            return self.take(b"\n")
        held, self._held = self._held, b""
        return held

    def _obeyed(self, line: re.Match[bytes]) -> bytes:
        """Do what a line says, and return nothing; or the line, with what is wrong with it."""
        said = line[1].decode(errors="replace").strip()
        try:
            self._obey(said)
        except InvalidRequest as error:
            return line[0] + f"toolcrib: {error.message}\n".encode()
        return b""

    def _obey(self, said: str) -> None:
        if said == "percent":
            self._redraws = Redraws(self._report)
        elif (found := _PROGRESS.fullmatch(said)) is not None:
            message = "".join(filter(str.isprintable, " ".join((found[2] or "").split())))
            self._report(parse_progress(found[1]), message or None)
        else:
            raise InvalidRequest(f"{shown(said)} is neither 'progress VALUE [MESSAGE]' nor 'percent'")


class Redraws:
    """Reports the percentages in lines that are drawn over with carriage returns, as rsync and wget do."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._last = b""

    def look(self, printed: bytes) -> None:
        """Report the newest percentage in what was just printed, if it stands in a line that is drawn over."""
        known = len(self._last)
        text = self._last + printed[-_LOOKED_AT:]
        self._last = text[-_REMEMBERED:]
        found = [match for match in _PERCENT.finditer(text) if match.end() > known]
        if found and float(found[-1][1]) <= 100 and b"\r" in _line_around(found[-1], text):
            self._report(float(found[-1][1]) / 100, None)


def _line_around(match: re.Match[bytes], text: bytes) -> bytes:
    begin, end = text.rfind(b"\n", 0, match.start()) + 1, text.find(b"\n", match.end())
    return text[begin:] if end < 0 else text[begin:end].removesuffix(b"\r")


def _may_become_ours(begin: bytes) -> bool:
    return MARK.startswith(begin) or (begin.startswith(MARK) and len(begin) < MAX_LINE)

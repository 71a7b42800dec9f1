"""Writes data to standard output and talk to standard error."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TextIO

if TYPE_CHECKING:
    from toolcrib.scheduling.views import View

Output = Literal["table", "json"]


def survive_any_terminal() -> None:
    """Let characters that the terminal's encoding lacks be written as escapes, and closed streams swallow all."""
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def give_up_stdout() -> None:
    """Write no more, after the reader of standard output has gone; the interpreter's last flush must not fail."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def end_process(code: int) -> NoReturn:
    """End this process now, after what was written.

    The interpreter's own way to end it aborts or hangs once in a while, because threads of the Temporal SDK still look
    for the interpreter when it goes away.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)


def is_live() -> bool:
    """Return whether standard output is a terminal on which lines can be drawn over."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in {"dumb", "unknown"}


def say(line: str) -> None:
    """Write a line of data, now."""
    _write(sys.stdout, line)


def say_bytes(data: bytes) -> None:
    """Write data as it is, now."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def note(line: str) -> None:
    """Tell the person at the terminal something that is no data."""
    _write(sys.stderr, line)


def say_json(value: Any, *, indent: int | None = 2) -> None:
    """Write `value` as JSON."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    say(json.dumps(value, indent=indent, ensure_ascii=not utf8))


def say_view(view: View, *, indent: int | None = 2) -> None:
    """Write a view as JSON."""
    say_json(view.model_dump(mode="json"), indent=indent)


def say_views(views: Iterable[View]) -> None:
    """Write views as a JSON array."""
    say_json([view.model_dump(mode="json") for view in views])


def say_table(headers: Sequence[str], rows: Iterable[Sequence[str]], *, indent: str = "") -> None:
    """Write rows in aligned columns; every cell on one line."""
    lines = [list(headers), *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True))
        say((indent + "  ".join(padded)).rstrip())


def say_block(fields: Iterable[tuple[str, str | None]]) -> None:
    """Write named values, one a line, without those that are None."""
    present = [(name, value) for name, value in fields if value is not None]
    width = max(len(name) for name, _ in present)
    for name, value in present:
        say(f"{name:<{width}}  {one_line(value)}".rstrip())


def one_line(text: str) -> str:
    """Return `text` with its line breaks and other control characters as escapes."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _write(stream: TextIO, text: str) -> None:
    """Write text; a terminal gets it without what would command it, since much of it is what tasks have written."""
    stream.write((_harmless(text) if stream.isatty() else text) + "\n")
    stream.flush()


def _harmless(text: str) -> str:
    """Return `text` with its control characters as escapes, but for line breaks and tabs."""
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) == "Cc" and char not in "\n\t" else char
        for char in text.replace("\r\n", "\n")
    )


def _width(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)

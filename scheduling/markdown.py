"""Text for people, as the Temporal Web UI takes it: Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LABEL_WIDTH: Final = 10
"""Columns that the label at the beginning of a line takes."""


def labelled(label: str, value: object) -> str:
    """Return a line that begins with its label."""
    return f"{label:<{LABEL_WIDTH}}{value}"


def as_is(lines: Iterable[str]) -> str:
    """Return lines as a block that is shown letter by letter, whatever it would mean in Markdown.

    Text of several lines is continued below its beginning, so that nothing in it can end the block.
    """
    continued = "\n" + " " * LABEL_WIDTH
    return "\n".join(["```", *(continued.join(line.splitlines()) for line in lines), "```"])

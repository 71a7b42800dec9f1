"""Tasks that belong together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Group:
    """A group of tasks: an id to find them by, and perhaps a name to show."""

    id: str
    name: str | None = None

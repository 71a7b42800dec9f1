"""How long hosts keep what attempts have left: their logs and artifacts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from toolcrib.scheduling.sizes import GIB, MIB

LOG_LIMIT: Final = 64 * MIB
"""Bytes of one attempt's output that its log has, unless the host file says otherwise."""


@dataclass(frozen=True, kw_only=True)
class Keep:
    """What is kept on a host."""

    age: float = 30 * 86_400.0
    """Seconds since the end of an attempt."""
    bytes: int = 10 * GIB
    """Of all attempts together."""


@dataclass(frozen=True, kw_only=True)
class KeptAttempt:
    """What an attempt has left."""

    name: str
    ended_at: float
    """In unix seconds."""
    bytes: int
    """On the disk."""
    open: bool = False
    """Whether its lease has not ended: then it stays, whatever it takes up."""


def outlived(kept: Iterable[KeptAttempt], keep: Keep, now: float) -> list[str]:
    """Return the names of the attempts whose log and artifacts go, the oldest first."""
    attempts = list(kept)
    total = sum(attempt.bytes for attempt in attempts)
    gone = []
    for attempt in sorted(attempts, key=lambda one: (one.ended_at, one.name)):
        if not attempt.open and (now - attempt.ended_at > keep.age or total > keep.bytes):
            gone.append(attempt.name)
            total -= attempt.bytes
    return gone

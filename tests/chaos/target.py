"""What is common to all faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from chaos.plan import Fault

Note = Callable[[str, tuple[str, ...]], None]
"""To be called when a fault is done: what it hit, and which devices that keeps, or may keep, from being used."""

One = TypeVar("One")


def target_of(fault: Fault, things: Sequence[One]) -> One:
    """Return the one that the fault is meant for."""
    return things[int(fault.target * len(things))]

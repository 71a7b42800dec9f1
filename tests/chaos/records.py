"""What a chaos run leaves behind: what works wrote down, what Temporal's histories say, and what breaks a rule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Ending = Literal["running", "completed", "failed", "canceled", "terminated", "timed_out"]


@dataclass(frozen=True, kw_only=True)
class Sign:
    """One line of the works' log. `work` is the process of the work, `at` seconds of CLOCK_BOOTTIME."""

    kind: Literal["start", "tick", "end"]
    at: float
    device: str
    fencing: int
    task: str
    work: int
    line: str


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a task's workflow, as its history has it."""

    task: str
    run_id: str
    ending: Ending
    replaces: str | None = None
    """The run that was reset, if this one came of a reset."""
    reason: str | None = None
    """Of a termination."""
    cancel_requested: bool = False
    result: str | None = None
    """What the work printed, if the task is done: its fencing number."""
    expired: int = 0
    """Attempts whose lease lapsed."""
    returned: int = 0
    """Attempts that the host gave back."""

    def __str__(self) -> str:
        reset = f", a reset of run {self.replaces}" if self.replaces else ""
        return f"task {self.task} run {self.run_id}: {self.ending}{reset}"


@dataclass(frozen=True, kw_only=True)
class Work:
    """One work on a device, from its start to the last sign of it."""

    start: Sign
    last: Sign
    """Its end is not earlier than this; a work that was killed leaves no other trace of its end."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that the verdict looks at."""

    signs: Sequence[Sign]
    runs: Sequence[Run]
    tasks: Sequence[str]
    """Tasks whose submission was accepted."""
    probes: Mapping[str, str]
    """By device, the task that asked for just that device when all others had ended."""


@dataclass(frozen=True, kw_only=True)
class Violation:
    """A rule that was broken, and the lines that show it."""

    rule: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n    ".join((self.rule, *self.lines))


def works(signs: Sequence[Sign]) -> dict[str, list[Work]]:
    """Return the works on each device, in the order in which they began; ticks without a start are works as well."""
    found: dict[tuple[str, int, int], Work] = {}
    for sign in sorted(signs, key=lambda sign: sign.at):
        key = (sign.device, sign.fencing, sign.work)
        known = found.get(key)
        found[key] = Work(start=known.start if known else sign, last=sign)
    by_device: dict[str, list[Work]] = defaultdict(list)
    for work in sorted(found.values(), key=lambda work: work.start.at):
        by_device[work.start.device].append(work)
    return by_device

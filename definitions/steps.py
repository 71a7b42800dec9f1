"""One step of a definition, as its host is to run it, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

DONE: Final = "done"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
Outcome = Literal["done", "failed", "skipped"]


@dataclass(frozen=True, kw_only=True)
class StepOrder:
    """A step whose references have been replaced by what they refer to."""

    id: str
    number: int
    """From 1."""
    of: int
    """How many steps the definition has."""
    runner: Literal["shell", "exec", "python"]
    run: str
    env: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)
    """What the definition calls `with`."""
    stdin: str | None = None
    stdin_log: str | None = None
    """Instead of `stdin`: the log of an earlier step, as in `StepEnd`, of which all is its input."""
    timeout: float | None = None
    """Seconds that one attempt may take."""
    max_attempts: int = 1


@dataclass(frozen=True, kw_only=True)
class StepEnd:
    """What came of a step."""

    id: str
    outcome: Outcome
    exit_code: int | None = None
    """None: it has not run, was ended, or did not get that far."""
    stdout: str = ""
    """The end of it, if it was long."""
    stderr: str = ""
    omitted_bytes: int = 0
    """Of standard output, before `stdout`."""
    stdout_log: str | None = None
    """Where all of it is, below the task's artifacts; None if there was none."""
    stderr_log: str | None = None
    attempts: int = 0
    result: Any = None
    """What the function of a `python` step returned."""
    problem: str | None = None
    """Why it failed."""

    def summary(self) -> dict[str, Any]:
        """Return what the result of the task says of it."""
        return {
            "id": self.id,
            "outcome": self.outcome,
            "exit_code": self.exit_code,
            "attempts": self.attempts,
            "omitted_bytes": self.omitted_bytes,
            "logs": [log for log in (self.stdout_log, self.stderr_log) if log],
        }

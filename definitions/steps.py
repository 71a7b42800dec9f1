"""One step of a definition, as its host is to run it, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

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


class Printed(NamedTuple):
    """What a step printed on one of its two streams."""

    end: str
    omitted_bytes: int
    """Before `end`."""
    log: str | None
    """Where all of it is; None if there was none."""


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
    omitted_stdout_bytes: int = 0
    """How many came before `stdout`."""
    omitted_stderr_bytes: int = 0
    stdout_log: str | None = None
    """Where all of it is, below the task's artifacts; None if there was none."""
    stderr_log: str | None = None
    attempts: int = 0
    result: Any = None
    """What the function of a `python` step returned."""
    problem: str | None = None
    """Why it failed."""

    def printed(self, stream: str) -> Printed:
        """Return what it printed on `stdout` or `stderr`."""
        if stream == "stdout":
            return Printed(self.stdout, self.omitted_stdout_bytes, self.stdout_log)
        return Printed(self.stderr, self.omitted_stderr_bytes, self.stderr_log)

    def summary(self) -> dict[str, Any]:
        """Return what the result of the task says of it."""
        return {
            "id": self.id,
            "outcome": self.outcome,
            "exit_code": self.exit_code,
            "attempts": self.attempts,
            "omitted_stdout_bytes": self.omitted_stdout_bytes,
            "omitted_stderr_bytes": self.omitted_stderr_bytes,
            "logs": [log for log in (self.stdout_log, self.stderr_log) if log],
        }

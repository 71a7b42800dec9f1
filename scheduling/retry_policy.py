"""How often a task is tried, and how long it waits in between, in the words of Temporal's own `RetryPolicy`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """Intervals are seconds. It is not handed to Temporal, whose own retry would stay on the same host."""

    maximum_attempts: int
    initial_interval: float = 1.0
    backoff_coefficient: float = 2.0
    maximum_interval: float = 60.0

    def interval_after(self, failures: int) -> float:
        """Return how long to wait after so many failed attempts, at least one."""
        # Bounded before it is computed: a power may be larger than any number.
        longest = self.maximum_interval / self.initial_interval
        growth = self.backoff_coefficient ** min(failures - 1, 64)
        return self.initial_interval * min(growth, longest)

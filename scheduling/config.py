"""How a pool is configured."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from toolcrib.scheduling.validation import validated

MIN_LEASE_TTL: Final = 3.0
MAX_QUEUE_DEPTH: Final = 20_000
DAY: Final = 86_400.0


class PoolConfig(BaseModel):
    """The settings of one pool; durations are seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    strategy: Annotated[str, Field(min_length=1, max_length=64)] = "fifo_match"
    max_concurrent: Annotated[int, Field(ge=1, le=100_000)] | None = 3
    """At most so many leases at once; None: as many as there are devices."""
    max_queue_depth: Annotated[int, Field(ge=1, le=MAX_QUEUE_DEPTH)] = 1_000
    claim_timeout: Annotated[float, Field(ge=1, le=DAY)] = 30.0
    lease_ttl: Annotated[float, Field(ge=MIN_LEASE_TTL, le=DAY)] = 15.0
    max_attempts: Annotated[int, Field(ge=1, le=100)] = 3

    def changed(self, changes: dict[str, object]) -> PoolConfig:
        """Return the settings with `changes` made.

        Raises:
            InvalidRequest: a field is unknown or its value outside its limits.
        """
        return validated(PoolConfig, {**self.model_dump(), **changes})

"""A device of a pool, its state, and what a host says about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from toolcrib.scheduling.names import device_key
from toolcrib.scheduling.references import Offered


class DeviceState(StrEnum):
    """The one state a device is in. Whether it is in service is a separate intent of its operator."""

    IDLE = "idle"
    LEASED = "leased"
    RELEASING = "releasing"
    RESTING = "resting"
    QUARANTINED = "quarantined"
    OFFLINE = "offline"


@dataclass(frozen=True, kw_only=True)
class DeviceSpec:
    """A device as its host describes it."""

    id: str
    driver: str
    driver_type: str
    tags: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class PooledDevice:
    """A device as its pool knows it; it is identified by host and id together."""

    host_id: str
    device_id: str
    driver_type: str
    tags: tuple[str, ...]
    state: DeviceState
    since: float
    """When it got into this state, in unix seconds."""
    properties: dict[str, str] = field(default_factory=dict)
    workflows: Annotated[Offered, Field(exclude=True)] = None
    """The references that its host runs on it; kept once, with the host."""
    in_service: bool = True
    reason: str | None = None
    failures: int = 0
    """Infrastructure failures in a row."""
    fault: str | None = None
    """What they were about, if there are any."""
    rests_until: float | None = None
    """Nobody gets it before, in unix seconds; None: it need not rest."""
    quarantine: str | None = None
    """Why nobody gets it until a person resumes it; whoever holds it now may finish."""
    over: int = 0
    """Leases of it with fencing numbers up to this one are known to have ended."""

    @property
    def key(self) -> str:
        """Its identity in the pool."""
        return device_key(self.host_id, self.device_id)

    def turn(self, state: DeviceState, now: float, reason: str | None = None) -> None:
        """Put it into `state`, noting since when and why."""
        if state is not self.state:
            self.state, self.since = state, now
        self.reason = reason

    def described_by(self, spec: DeviceSpec) -> None:
        """Take over what its host says of it."""
        self.driver_type, self.tags, self.properties = spec.driver_type, spec.tags, dict(spec.properties)

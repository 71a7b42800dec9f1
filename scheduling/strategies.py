"""Assignment strategies by name: in which order tasks wait, and which of the fitting devices one gets.

The scheduler itself finds what fits; a strategy only ranks and picks. It must be pure and deterministic, and a released
name never changes its meaning, because pools replay their decisions: a new rule is a new name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from toolcrib.scheduling.device import PooledDevice
from toolcrib.scheduling.errors import InvalidRequest, UnknownStrategy
from toolcrib.scheduling.names import checked_name
from toolcrib.scheduling.quoting import shown
from toolcrib.scheduling.waiting import Waiting

Rank = tuple[float, ...]


@runtime_checkable
class AssignmentStrategy(Protocol):
    """Who is served first, and with what."""

    def rank(self, task: Waiting) -> Rank:
        """Return where `task` stands in the queue: the lowest is served first. It may not depend on other tasks."""

    def choose(self, task: Waiting, devices: Sequence[PooledDevice]) -> PooledDevice | None:
        """Return one of `devices`, or None to let `task` wait.

        They all are idle and fit the task; there is at least one, and they come in registration order.
        """


def checked_rank(rank: object) -> Rank:
    """Return what a strategy's `rank` returned, as a tuple.

    Raises:
        ValueError: it is not a tuple or list of numbers that can be compared.
    """
    if not isinstance(rank, tuple | list) or not all(isinstance(part, int | float) and part == part for part in rank):
        raise ValueError(f"rank() returned {shown(rank)}, which is not a tuple of numbers")
    return tuple(rank)


class StrategyRegistry:
    """Strategies by name."""

    def __init__(self) -> None:
        self._strategies: dict[str, AssignmentStrategy] = {}

    def register(self, name: str, strategy: AssignmentStrategy) -> None:
        """Add `strategy` under `name`.

        Raises:
            InvalidRequest: the name is taken or malformed, or the object is no strategy.
        """
        checked_name(name, "strategy")
        if name in self._strategies:
            raise InvalidRequest(f"strategy: {name!r} is registered already")
        if not isinstance(strategy, AssignmentStrategy):
            raise InvalidRequest(f"strategy: {name!r} has no rank() and choose()")
        self._strategies[name] = strategy

    def get(self, name: str) -> AssignmentStrategy:
        """Return the strategy called `name`.

        Raises:
            UnknownStrategy: there is none.
        """
        try:
            return self._strategies[name]
        except KeyError:
            raise UnknownStrategy.named(name, self.names()) from None

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self._strategies)

    def __contains__(self, name: object) -> bool:
        return name in self._strategies


STRATEGIES: Final = StrategyRegistry()
"""The registry that pools use."""

Registrable = TypeVar("Registrable", bound=type[Any])


def assignment_strategy(name: str) -> Callable[[Registrable], Registrable]:
    """Register the decorated class, made without arguments, under `name`.

    Raises:
        InvalidRequest: as `StrategyRegistry.register`.
    """

    def decorate(cls: Registrable) -> Registrable:
        STRATEGIES.register(name, cls())
        return cls

    return decorate


@assignment_strategy("fifo_match")
class FifoMatch:
    """The oldest task that has a fitting idle device gets the first such device. Priority is ignored."""

    def rank(self, task: Waiting) -> Rank:
        """Order by submission."""
        return (task.submitted_at, task.sequence)

    def choose(self, task: Waiting, devices: Sequence[PooledDevice]) -> PooledDevice | None:
        """Take the one registered first."""
        return devices[0]


@assignment_strategy("priority_fifo")
class PriorityFifo(FifoMatch):
    """As `fifo_match`, but tasks of priority 1 go before those of 2, and so on to 5."""

    def rank(self, task: Waiting) -> Rank:
        """Order by priority, then submission."""
        return (task.priority, *super().rank(task))

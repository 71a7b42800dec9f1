"""Asks a pool's strategy, which may be a third party's: one that raises must not take the pool down."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from toolcrib.scheduling.pool import PoolState
from toolcrib.scheduling.strategies import AssignmentStrategy, Rank, StrategyRegistry, checked_rank
from toolcrib.scheduling.waiting import TaskQueue, Waiting

MAX_PROBLEM_LENGTH: Final = 500


class Ranking:
    """The strategy that a pool is configured with."""

    def __init__(self, state: PoolState, registry: StrategyRegistry) -> None:
        self._state = state
        self._registry = registry

    @property
    def strategy(self) -> AssignmentStrategy:
        """The strategy itself.

        Raises:
            UnknownStrategy: it is not registered here.
        """
        return self._registry.get(self._state.config.strategy)

    def queue_of(self, tasks: Iterable[Waiting]) -> TaskQueue:
        """Return a queue of these tasks, each in its place."""
        queue = TaskQueue(self._rank)
        for task in tasks:
            queue.add(task)
        return queue

    def failed(self, error: Exception) -> None:
        """Note why the strategy grants nothing."""
        problem = f"strategy {self._state.config.strategy!r}: {type(error).__name__}: {error}"
        self._state.problem = problem[:MAX_PROBLEM_LENGTH]

    def _rank(self, task: Waiting) -> Rank | None:
        try:
            return checked_rank(self.strategy.rank(task))
        except Exception as error:  # noqa: BLE001 - whatever it raises
            self.failed(error)
            return None

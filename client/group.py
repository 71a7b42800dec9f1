"""Tasks that belong together: what they are called, how far they are, and what can be done with all of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolcrib.scheduling.errors import InvalidRequest, TaskEnded, UnknownTask
from toolcrib.scheduling.quoting import shown
from toolcrib.scheduling.views import GroupView, TaskView, group_view

if TYPE_CHECKING:
    from toolcrib.client.crib import Toolcrib

MAX_TASKS: Final = 10_000
INTERVAL: Final = 0.5
"""Seconds between two looks at tasks that are waited for."""


@dataclass(frozen=True)
class Group:
    """A group of tasks: an id to find them by, and perhaps a name to show."""

    id: str
    name: str | None = None


def checked_group(group: object) -> Group | None:
    """Return a group, which may be given by its id alone.

    Raises:
        InvalidRequest: it is something else.
    """
    if group is None or isinstance(group, Group):
        return group
    if isinstance(group, str):
        return Group(group)
    raise InvalidRequest(
        f"group: {shown(group)} is neither a group's id nor a Group",
        hint='Give its id, such as "nightly", or Group("nightly", "Nightly tests").',
    )


class GroupHandle:
    """The tasks with one group id, in all pools; one submitted within the last second may still be missing."""

    def __init__(self, crib: Toolcrib, group_id: str) -> None:
        self.id = group_id
        self._crib = crib

    async def tasks(self) -> list[TaskView]:
        """Return its tasks, the newest first."""
        return await self._crib.tasks(group=self.id, limit=MAX_TASKS)

    async def show(self) -> GroupView:
        """Return how many of its tasks are in which state, and their mean progress."""
        return group_view(self.id, await self.tasks())

    async def wait(self) -> GroupView:
        """Wait until all of its tasks have ended, however they did."""
        while True:
            view = await self.show()
            if view.ended:
                return view
            await asyncio.sleep(INTERVAL)

    async def cancel(self) -> list[str]:
        """Cancel those of its tasks that have not ended, and return their ids."""
        cancelled = []
        for view in await self.tasks():
            if not view.ended:
                try:
                    await self._crib.task(view.id).cancel()
                except (TaskEnded, UnknownTask):
                    continue  # it ended just now
                cancelled.append(view.id)
        return cancelled

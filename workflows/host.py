"""Host: the presence of one host. One activity heartbeats on it for as long as its worker lives."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.exceptions import TimeoutError as ActivityTimeout

from toolcrib.scheduling.messages import HostSilent, Presence
from toolcrib.scheduling.names import HOST, host_work_queue
from toolcrib.workflows.contract import ANOTHER_WORKER, HOST_HELLO, PRESENCE
from toolcrib.workflows.pool_calls import ONCE, silence

PICK_UP: Final = timedelta(seconds=30)
PAUSE: Final = timedelta(seconds=1)
"""After which an older worker, which took what was not for it, may have stopped."""
MOST_MISSES: Final = 30
_POOL: Final = SearchAttributeKey.for_keyword("ToolcribPool")
LIFETIME: Final = timedelta(days=3650)


@workflow.defn(name=HOST)
class Host:
    """Says so to the pool when the host falls silent, and ends; a worker that comes back starts it again."""

    @workflow.init
    def __init__(self, presence: Presence) -> None:
        self._latest = presence
        self._hellos = 0
        self._misses = 0
        """How often another worker of the host took the activity, which is then tried again."""

    @workflow.run
    async def run(self, presence: Presence) -> str:
        """Return why the host went."""
        while True:
            current, hellos = self._latest, self._hellos
            reason = await self._until_silent(current, hellos)
            if reason is not None:
                message = HostSilent(
                    host_id=current.host_id,
                    incarnation=current.incarnation,
                    reason=reason,
                    registration=current.registration,
                )
                await silence(current.pool, message)
                if self._hellos == hellos:
                    return reason

    @workflow.signal(name=HOST_HELLO)
    def hello(self, presence: Presence) -> None:
        """Take note of a worker that has just registered."""
        if presence.pool != self._latest.pool:
            workflow.upsert_search_attributes([_POOL.value_set(presence.pool)])
        if presence.incarnation >= self._latest.incarnation or presence.pool != self._latest.pool:
            self._latest, self._hellos, self._misses = presence, self._hellos + 1, 0

    async def _until_silent(self, current: Presence, hellos: int) -> str | None:
        """Return why the host fell silent, or None if a worker said hello again."""
        workflow.set_current_details(f"incarnation {current.incarnation} of host {current.host_id} is online")
        activity = workflow.start_activity(
            PRESENCE,
            current,
            task_queue=host_work_queue(current.host_id),
            schedule_to_start_timeout=PICK_UP,
            heartbeat_timeout=timedelta(seconds=current.ttl),
            start_to_close_timeout=LIFETIME,
            retry_policy=ONCE,
            summary=f"incarnation {current.incarnation}",
        )
        await workflow.wait_condition(lambda: activity.done() or self._hellos != hellos)
        if not activity.done():
            activity.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            activity.cancel()
            return None
        error = None if activity.cancelled() else activity.exception()
        cause = error.cause if isinstance(error, ActivityError) else None
        if isinstance(cause, ActivityTimeout):
            return "it no longer heartbeats"
        if isinstance(cause, ApplicationError) and cause.type == ANOTHER_WORKER and self._misses < MOST_MISSES:
            self._misses += 1
            with suppress(TimeoutError):
                await workflow.wait_condition(lambda: self._hellos != hellos, timeout=PAUSE)
            return None
        return "its worker stopped"

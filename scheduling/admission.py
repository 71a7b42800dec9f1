"""Whether a pool takes a task in."""

from __future__ import annotations

from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.errors import ErrorBody, UnknownDefinition
from toolcrib.scheduling.messages import QueueEntry
from toolcrib.scheduling.pool import PoolState
from toolcrib.scheduling.references import near, runs
from toolcrib.scheduling.room import no_room
from toolcrib.scheduling.waiting import TaskQueue


def not_admitted(state: PoolState, queue: TaskQueue, entry: QueueEntry) -> ErrorBody | None:
    """Return why a pool does not take in a task that it does not know; None if it does."""
    wanted = entry.constraints.workflow
    return (None if wanted is None else _unknown(state, wanted, entry.constraints)) or no_room(state, queue, entry)


def _unknown(state: PoolState, wanted: str, demand: Constraints) -> ErrorBody | None:
    """Return an error if no host of the pool, online or not, has a workflow for devices as they are asked for.

    One that is enrolled and has not registered yet may have it, as after the pool was rebuilt; and while there is none,
    nothing is known. Then the task waits.
    """
    hosts = [host for host in state.hosts.values() if host.public_key is not None]
    asked = [host for host in hosts if demand.host_id in (None, host.host_id)]
    offers = [offered for host in asked for offered in host.offers_on(demand.driver_type)]
    if not offers or any(host.last_seen is None for host in hosts) or any(runs(offered, wanted) for offered in offers):
        return None
    known = [reference for host in hosts for offered in host.offers_on(None) for reference in offered or ()]
    return UnknownDefinition.named(wanted, state.name, near(wanted, known), on=demand.driver_type).body

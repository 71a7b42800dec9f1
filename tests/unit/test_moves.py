"""From which status to which other a task goes, move by move, in both vocabularies."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import product
from typing import Final

import pytest

from support.rules import START, assigned, claim, dispatched, lease, report, task
from toolcrib.scheduling.errors import ClaimRefused, ErrorBody
from toolcrib.scheduling.external import ExternalEnd, ExternalRecord, ExternalRequest
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import HostRestarted, Progress, ReportOutcome
from toolcrib.scheduling.task import ENDED, MOVES, Status, TaskRecord, moved
from toolcrib.scheduling.views import STATE_OF

QUEUED, ASSIGNED, DISPATCHED, DONE, FAILED, CANCELLED = Status
LATER: Final = START + 10**9

Event = Callable[[TaskRecord], object]


def record_in(status: Status, max_attempts: int) -> TaskRecord:
    """Return a task that came to `status` by what its pool, its host or a person said."""
    record = task(max_attempts=max_attempts, queue_timeout=60)
    if status is ASSIGNED:
        assigned(record)
    elif status is DISPATCHED:
        dispatched(record)
    elif status is CANCELLED:
        record.cancel(START)
    elif status in (DONE, FAILED):
        record.report(report(dispatched(record), ReportOutcome(status.value)), START)
    assert record.status is status
    return record


def _offer(record: TaskRecord) -> None:
    record.offer(lease(len(record.attempts) + 1, fencing=9_999), START)


def _claim(record: TaskRecord) -> None:
    with suppress(ClaimRefused):
        record.claim(claim(_last_lease(record)), START)


def _report(outcome: ReportOutcome) -> Event:
    return lambda record: record.report(report(_last_lease(record), outcome), START)


def _last_lease(record: TaskRecord) -> Lease:
    return record.attempts[-1].lease if record.attempts else lease()


EVENTS: Final[dict[str, Event]] = {
    "offer": _offer,
    "claim": _claim,
    **{outcome.value: _report(outcome) for outcome in ReportOutcome},
    "expire": lambda record: record.expire("the host stopped renewing it", START),
    "refuse": lambda record: record.refuse("forged", START),
    "restart": lambda record: record.host_restarted(HostRestarted(host_id="h", incarnation=9, machine="m"), START),
    "progress": lambda record: record.progressed(Progress(lease_id=_last_lease(record).id, value=0.5)),
    "cancel": lambda record: record.cancel(START),
    "wait": lambda record: record.give_up_waiting(LATER),
    "turn down": lambda record: record.fail(ErrorBody(code="queue_full", message="the queue is full"), START),
    "reset": lambda record: record.begin_anew(START),
}

LAPSES: Final = ("expire", "refuse", "abandoned", "stopped")
"""What ends an attempt that is counted, without a verdict on the work."""


def expected(status: Status, event: str, attempts_left: bool) -> Status:
    """Return where the specifications lead from `status` by `event`; by all else it stays where it is."""
    again = QUEUED if attempts_left else FAILED
    moves: dict[tuple[Status, str], Status] = {
        (QUEUED, "offer"): ASSIGNED,
        (QUEUED, "wait"): FAILED,
        (ASSIGNED, "claim"): DISPATCHED,
        (DISPATCHED, "done"): DONE,
        (DISPATCHED, "failed"): FAILED,
        (DISPATCHED, "restart"): again,
        (ASSIGNED, "done"): again,
        (ASSIGNED, "failed"): again,
        **{(open_, lapse): again for open_ in (ASSIGNED, DISPATCHED) for lapse in LAPSES},
        **{(open_, "returned"): QUEUED for open_ in (ASSIGNED, DISPATCHED)},
        **{(open_, "reset"): QUEUED for open_ in (ASSIGNED, DISPATCHED)},
        **{(open_, "cancel"): CANCELLED for open_ in (QUEUED, ASSIGNED, DISPATCHED)},
        **{(open_, "turn down"): FAILED for open_ in (QUEUED, ASSIGNED, DISPATCHED)},
    }
    return moves.get((status, event), status)


@pytest.mark.parametrize("attempts_left", [True, False])
@pytest.mark.parametrize(("status", "event"), list(product(Status, EVENTS)))
def test_s2_08_every_event_in_every_status(status: Status, event: str, attempts_left: bool) -> None:
    """It leads where the table says, with attempts left and at their limit, and nowhere else."""
    record = record_in(status, 2 if attempts_left else 1)
    EVENTS[event](record)
    assert record.status is expected(status, event, attempts_left)


@pytest.mark.parametrize(("before", "after"), list(product(Status, Status)))
def test_s2_08_no_other_move_is_possible(before: Status, after: Status) -> None:
    """Whoever writes a rule that makes one is stopped; the ends lead nowhere."""
    if after in MOVES[before]:
        assert moved(before, after) is after
    else:
        with pytest.raises(RuntimeError, match=f"from {before} to {after}"):
            moved(before, after)
    assert (before in ENDED) == (MOVES[before] == ())


def test_s2_08_the_same_in_the_words_of_background_tasks() -> None:
    """Each listed move is there; of others only those that decision 17 allows; pending never becomes completed."""
    moves = {(STATE_OF[before], STATE_OF[after]) for before in Status for after in MOVES[before]}
    assert moves - {("pending", "pending")} == {
        ("pending", "running"),
        ("running", "completed"),
        ("running", "failed"),
        ("running", "cancelled"),
        ("pending", "cancelled"),
        ("running", "pending"),
        ("pending", "failed"),
    }


@pytest.mark.parametrize("end", ["done", "failed", "cancelled"])
def test_s2_08_a_task_that_runs_elsewhere_ends_once(end: str) -> None:
    """From running to one of the three ends, and from there nowhere."""
    record = ExternalRecord(task_id="t", request=ExternalRequest(name="n"), created_at=START)
    ends: dict[str, Callable[[], None]] = {
        "done": lambda: record.end(ExternalEnd(outcome="done"), START),
        "failed": lambda: record.end(ExternalEnd(outcome="failed", message="no"), START),
        "cancelled": lambda: record.cancel(START),
    }
    assert STATE_OF[record.status] == "running"
    ends[end]()
    assert record.status == end
    for later in ends.values():
        later()
        record.progressed(Progress(lease_id="t", value=0.5))
    assert record.status == end

"""The JSON that people's programs read: which fields are there, and how they are written."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from support.rules import START, claim, lease, report, task
from toolcrib.scheduling.device import DeviceState
from toolcrib.scheduling.errors import ErrorBody
from toolcrib.scheduling.lease import Outcome
from toolcrib.scheduling.messages import Progress, ReportOutcome
from toolcrib.scheduling.task import Status
from toolcrib.scheduling.task_view import details, task_view
from toolcrib.scheduling.views import STATE_OF, AttemptView, DeviceView, PendingReason, TaskView, moment

TASK = (
    *("id", "name", "status", "state", "pool", "priority", "goal", "workflow", "inputs", "driver_type", "tags"),
    *("device_id", "host_id", "attempt", "attempts", "created_at", "started_at", "finished_at", "result", "error"),
    "pending_reason",
)
LEFT_OUT_WHEN_UNSET = ("progress", "message", "group_id", "group_name")
ATTEMPT = (
    *("number", "host_id", "device_id", "lease_id", "fencing", "outcome", "reason"),
    *("assigned_at", "expires_at", "claimed_at", "ended_at"),
)


def shown(view: Any) -> dict[str, Any]:
    """Return a view as a program reads it."""
    data: dict[str, Any] = json.loads(view.model_dump_json())
    return data


def test_a_new_task_shows_every_field_but_the_four_that_are_unset() -> None:
    """Those four are left out; all others are there, null if they have no value."""
    data = shown(task_view(task()))
    assert sorted(data) == sorted(TASK)
    values = {name: value for name, value in data.items() if value is not None}
    assert values == {
        "id": "t",
        "name": "echo",
        "status": "queued",
        "state": "pending",
        "pool": "default",
        "priority": 3,
        "goal": "echo",
        "inputs": {},
        "tags": [],
        "attempt": 0,
        "attempts": [],
        "created_at": "1970-01-12T13:46:40.000Z",
    }


def test_a_task_that_has_them_shows_the_four_as_well() -> None:
    """Also a progress of zero and a message that is empty: they were set."""
    record = task(group_id="g", group_name="nightly")
    held = lease()
    record.offer(held, START)
    record.claim(claim(held), START + 1.5)
    record.progressed(Progress(lease_id=held.id, value=0.0, message=""))
    data = shown(task_view(record))
    assert sorted(data) == sorted([*TASK, *LEFT_OUT_WHEN_UNSET])
    assert [data[name] for name in LEFT_OUT_WHEN_UNSET] == [0.0, "", "g", "nightly"]


def test_an_attempt_shows_its_whole_story() -> None:
    """Times are RFC 3339 in UTC, with milliseconds and `Z`."""
    record = task()
    held = lease()
    record.offer(held, START)
    record.claim(claim(held), START + 1.5)
    record.expire("the host stopped renewing it", START + 20)
    (data,) = shown(task_view(record))["attempts"]
    assert sorted(data) == sorted(ATTEMPT)
    assert data == {
        "number": 1,
        "host_id": "h",
        "device_id": "d",
        "lease_id": "t.1.101",
        "fencing": 101,
        "outcome": "expired",
        "reason": "the host stopped renewing it",
        "assigned_at": "1970-01-12T13:46:40.000Z",
        "expires_at": "1970-01-12T13:47:10.000Z",
        "claimed_at": "1970-01-12T13:46:41.500Z",
        "ended_at": "1970-01-12T13:47:00.000Z",
    }


@pytest.mark.parametrize("outcome", [ReportOutcome.DONE, ReportOutcome.FAILED])
def test_s2_22_s2_25_an_end_shows_progress_or_message(outcome: ReportOutcome) -> None:
    """Done means 1.0, though nobody reported it; failed means the error's text as message, and the error itself."""
    record = task()
    held = lease()
    record.offer(held, START)
    record.claim(claim(held), START)
    record.report(report(held, outcome, {"exit_code": 0}), START + 1)
    data = shown(task_view(record))
    assert data["result"] == {"exit_code": 0}
    if outcome is ReportOutcome.DONE:
        assert (data["progress"], data["error"], "message" in data) == (1.0, None, False)
    else:
        error = {"code": "task_failed", "message": "it was failed", "hint": None}
        assert (data["error"], data["message"], "progress" in data) == (error, "it was failed", False)


def test_k01_both_vocabularies_are_complete() -> None:
    """Each status has its word among those of background tasks."""
    assert list(STATE_OF) == [status.value for status in Status]
    assert STATE_OF == {
        "queued": "pending",
        "assigned": "pending",
        "dispatched": "running",
        "done": "completed",
        "failed": "failed",
        "cancelled": "cancelled",
    }


def test_words_of_views_are_those_of_the_rules() -> None:
    """States and outcomes are written once more in the views, whose shape is public: they may not drift apart."""
    assert set(get_args(DeviceView.model_fields["state"].annotation)) == {state.value for state in DeviceState}
    outcome = get_args(AttemptView.model_fields["outcome"].annotation)[0]
    assert set(get_args(outcome)) == {outcome.value for outcome in Outcome}
    assert set(get_args(PendingReason.model_fields["code"].annotation)) == {
        *("no_such_device", "all_busy", "cap", "out_of_service", "offline"),
        *("quarantined", "resting", "in_line", "backoff"),
    }


def test_the_devices_of_a_task_are_those_it_has_or_had_or_asked_for() -> None:
    """Before the first lease, what it asked for; from then on, the last one."""
    record = task(device_id="wanted", host_id="there")
    assert (task_view(record).device_id, task_view(record).host_id) == ("wanted", "there")
    record.offer(lease(), START)
    assert (task_view(record).device_id, task_view(record).host_id, task_view(record).attempt) == ("d", "h", 1)
    record.cancel(START)
    assert task_view(record).device_id == "d"


def test_a_view_can_be_read_back() -> None:
    """The client does so."""
    view = task_view(task(group_id="g"))
    assert TaskView.model_validate_json(view.model_dump_json()) == view
    assert not view.ended
    assert view.model_copy(update={"status": "failed"}).ended


def test_a_task_in_a_few_lines() -> None:
    """What it needs while it waits, its attempts, and what went wrong."""
    record = task(tags=["a"], name="nightly")
    assert details(record) == "```\ntask      nightly\nstatus    queued\npool      default\nneeds     tag a\n```"
    record.offer(lease(), START)
    record.expire("it was not claimed in time", START)
    second = lease(2)
    record.offer(second, START)
    record.claim(claim(second), START)
    assert details(record).splitlines()[2:-1] == [
        "status    dispatched",
        "pool      default",
        "attempt 1 h/d  expired  it was not claimed in time",
        "attempt 2 h/d  running",
    ]
    record.fail(ErrorBody(code="x", message="boom\n```\n*again*"), START)
    assert details(record).endswith("\nerror     boom\n          ```\n          *again*\n```")


def test_a_moment_is_in_utc() -> None:
    """And none is none."""
    assert moment(None) is None
    assert moment(0.0).isoformat() == "1970-01-01T00:00:00+00:00"

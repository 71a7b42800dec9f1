"""`toolcrib status`, `list`, `watch` and `cancel`."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.fake_crib import CREATED, FakeCrib, FakeHandle, task_view
from toolcrib.scheduling.errors import TaskEnded

if TYPE_CHECKING:
    from support.cli import Run

pytest_plugins = ["support.cli"]

LEASED: dict[str, Any] = {"attempt": 1, "host_id": "lab", "device_id": "slot-1"}
ENDED = TaskEnded("task task-2 has ended and cannot be cancelled")


def test_status_shows_attempts_reason_and_result(cli: Run, crib: FakeCrib) -> None:
    """A person sees where the task is, every attempt with its outcome, and what it gave."""
    first = {
        "number": 1,
        "host_id": "lab",
        "device_id": "slot-1",
        "lease_id": "task-1.1.7",
        "fencing": 7,
        "outcome": "expired",
        "reason": "not renewed for 15 s",
        "assigned_at": CREATED,
        "expires_at": CREATED,
        "ended_at": CREATED + timedelta(seconds=61),
    }
    view = task_view(
        status="failed",
        goal="echo one\necho two",
        tags=["linux"],
        attempts=[first],
        result={"partial": True},
        error={"code": "lease_expired", "message": "its lease expired", "hint": "Look after the host"},
        **LEASED,
    )
    crib.add(FakeHandle("task-1", [view]))
    ran = cli("status", "task-1")
    assert (ran.code, ran.err) == (0, "")
    assert "status    failed" in ran.out
    assert r"goal      echo one\necho two" in ran.out
    assert "asks for  tag linux" in ran.out
    assert "error     its lease expired (lease_expired)" in ran.out
    assert "1  lab/slot-1  expired  2026-11-30T12:00:00Z  1m01s  not renewed for 15 s" in ran.out
    assert ran.out.endswith('result\n{"partial": true}\n')


def test_status_says_why_a_task_waits(cli: Run, crib: FakeCrib) -> None:
    """A queued task's pending reason is shown."""
    crib.add(FakeHandle("task-1", [task_view(pending_reason={"code": "cap", "text": "3 of 3 leases are out"})]))
    assert "waits    3 of 3 leases are out" in cli("status", "task-1").out


def test_status_says_what_a_task_asks_for(cli: Run, crib: FakeCrib) -> None:
    """Host and device as well, until it has had a lease: then they are those of the lease."""
    asked: dict[str, Any] = {"driver_type": "local", "tags": ["gpu"], "host_id": "lab", "device_id": "slot-1"}
    crib.add(FakeHandle("task-1", [task_view(**asked)]))
    crib.add(FakeHandle("task-2", [task_view("task-2", "dispatched", **asked, attempt=1)]))
    assert "asks for  type local, host lab, device slot-1, tag gpu" in cli("status", "task-1").out
    assert "asks for  type local, tag gpu\n" in cli("status", "task-2").out


def test_status_under_json_is_the_task(cli: Run, crib: FakeCrib) -> None:
    """With `-o json` it is one TaskView, optional fields left out when unset."""
    crib.add(FakeHandle("task-1", [task_view()]))
    data = json.loads(cli("status", "task-1", "-o", "json").out)
    assert data["id"] == "task-1"
    assert data["created_at"] == "2026-11-30T12:00:00.000Z"
    assert "progress" not in data


@pytest.mark.parametrize("words", [["status", "task-9"], ["watch", "task-9"], ["watch", "task-1", "task-9"]])
def test_an_unknown_task_is_exit_code_8(cli: Run, crib: FakeCrib, words: list[str]) -> None:
    """A task that is not there is told by name, also among others that are."""
    crib.add(FakeHandle("task-1", [task_view()], stays=True))
    ran = cli(*words)
    assert ran.code == 8
    assert "no such task: task-9" in ran.err


def test_list_has_one_line_for_a_task(cli: Run, crib: FakeCrib) -> None:
    """The table has id, name, status, device, waited and age, in columns that hold wide letters too."""
    crib.add(FakeHandle("task-1", [task_view(name="\u5ba2\u5385", status="dispatched", progress=0.5, **LEASED)]))
    crib.add(FakeHandle("task-2", [task_view("task-2", status="done", **LEASED)]))
    ran = cli("list")
    header, first, second = ran.out.splitlines()
    assert header.split() == ["ID", "NAME", "STATUS", "DEVICE", "WAITED", "AGE"]
    assert first.startswith("task-1  \u5ba2\u5385        dispatched 50%  lab/slot-1  ")
    assert second.startswith("task-2  echo hello  done            lab/slot-1  5s  ")


def test_list_passes_its_filters_on(cli: Run, crib: FakeCrib) -> None:
    """Filters are the client's; nothing found is an empty table with a note, or an empty array."""
    ran = cli("list", "--status", "queued", "--state", "pending", "--pool", "p", "--group", "g", "--limit", "7")
    assert (ran.code, ran.out, ran.err) == (0, "", "no such tasks\n")
    assert crib.asked == {"status": "queued", "state": "pending", "pool": "p", "group": "g", "limit": 7}
    assert json.loads(cli("list", "-o", "json").out) == []


def test_watch_prints_a_line_for_each_change(cli: Run, crib: FakeCrib) -> None:
    """Changes are printed as they come, repeats are not, and it ends when all tasks have ended."""
    queued, running, done = task_view(), task_view(status="dispatched", **LEASED), task_view(status="done", **LEASED)
    crib.add(FakeHandle("task-1", [queued, queued, running, done]))
    ran = cli("watch", "task-1")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "task-1  echo hello: queued",
        "task-1  echo hello: dispatched on lab/slot-1",
        "task-1  echo hello: done on lab/slot-1",
    ]


def test_watch_under_json_is_one_task_a_line(cli: Run, crib: FakeCrib) -> None:
    """With `-o json` each line is a TaskView, of all tasks given, each given once."""
    crib.add(FakeHandle("task-1", [task_view(), task_view(status="done")]))
    crib.add(FakeHandle("task-2", [task_view("task-2", "failed")]))
    ran = cli("watch", "task-1", "task-2", "task-1", "-o", "json")
    seen = [(view["id"], view["status"]) for view in map(json.loads, ran.out.splitlines())]
    assert sorted(seen) == [("task-1", "done"), ("task-1", "queued"), ("task-2", "failed")]


def test_watch_of_a_group_takes_its_open_tasks(cli: Run, crib: FakeCrib) -> None:
    """Of a group the tasks that are open are watched; with none there is nothing to wait for."""
    crib.add(FakeHandle("task-1", [task_view(status="done")]))
    ran = cli("watch", "--group", "nightly")
    assert (ran.code, ran.out, ran.err) == (0, "", "no open tasks there\n")
    assert crib.asked["group"] == "nightly"


def test_watch_of_a_pool_takes_two_hundred_at_most(cli: Run, crib: FakeCrib) -> None:
    """Those that run before those that wait, and it says that there are more."""
    for n in range(150):
        crib.add(FakeHandle(f"task-w{n}", [task_view(f"task-w{n}")]))
        crib.add(FakeHandle(f"task-r{n}", [task_view(f"task-r{n}", "dispatched", state="running")]))
    ran = cli("watch", "--pool", "lab")
    assert ran.err == "there are more open tasks than can be watched; these are 200 of them\n"
    shown = [line.split()[0] for line in ran.out.splitlines()]
    assert shown == [f"task-r{n}" for n in range(150)] + [f"task-w{n}" for n in range(50)]


def test_cancel_prints_what_it_cancelled(cli: Run, crib: FakeCrib) -> None:
    """The ids of cancelled tasks are printed, one a line."""
    handles = [crib.add(FakeHandle(f"task-{n}", [task_view(f"task-{n}")])) for n in (1, 2)]
    ran = cli("cancel", "task-1", "task-2")
    assert (ran.code, ran.out, ran.err) == (0, "task-1\ntask-2\n", "")
    assert all(handle.cancelled for handle in handles)
    assert [view["id"] for view in json.loads(cli("cancel", "task-1", "-o", "json").out)] == ["task-1"]


@pytest.mark.parametrize(
    ("ids", "code", "message"),
    [
        (["task-2", "task-1"], 4, "task task-2 has ended"),
        (["task-9", "task-1"], 8, "no such task: task-9"),
    ],
)
def test_cancel_goes_on_after_a_refusal(cli: Run, crib: FakeCrib, ids: list[str], code: int, message: str) -> None:
    """A task that ended or is unknown does not keep the others from being cancelled, but shows in the exit code."""
    crib.add(FakeHandle("task-1", [task_view()]))

    crib.add(FakeHandle("task-2", [task_view("task-2", "done")], refusal=ENDED))
    ran = cli("cancel", *ids)
    assert (ran.code, ran.out) == (code, "task-1\n")
    assert message in ran.err
    assert len(ran.err.splitlines()) == 2


def test_cancel_of_a_group_takes_what_is_open(cli: Run, crib: FakeCrib) -> None:
    """Of a group the open tasks are cancelled; one that ends meanwhile is no failure."""
    crib.add(FakeHandle("task-1", [task_view()]))
    crib.add(FakeHandle("task-2", [task_view("task-2")], refusal=ENDED))
    crib.add(FakeHandle("task-3", [task_view("task-3", "done")]))
    ran = cli("cancel", "--group", "nightly")
    assert (ran.code, ran.out, ran.err) == (0, "task-1\n", "")


def test_cancel_of_a_group_without_open_tasks_is_no_failure(cli: Run) -> None:
    """With nothing to cancel it says so."""
    ran = cli("cancel", "--group", "nightly")
    assert (ran.code, ran.out, ran.err) == (0, "", "no open tasks in group 'nightly'\n")

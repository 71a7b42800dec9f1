"""The verdict of the chaos suite: it finds nothing in a sound run, and catches every kind of fault in a broken one."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from chaos.records import Evidence, Run, Sign, works
from chaos.verdict import OPERATOR, judge

DEVICE = "host-1/slot-1"


def sign(
    kind: Literal["start", "tick", "end"], at: float, task: str = "a", *, fencing: int = 1, device: str = DEVICE
) -> Sign:
    """Return a line of the works' log; each lease has a work, and so a process, of its own."""
    line = f"{kind} {at} {device} {fencing} {task}"
    return Sign(kind=kind, at=at, device=device, fencing=fencing, task=task, work=100 + fencing, line=line)


def work(
    task: str, begin: float, end: float, *, fencing: int, device: str = DEVICE, killed: bool = False
) -> list[Sign]:
    """Return what one work writes; one that is killed writes no end."""
    signs = [
        sign("start", begin, task, fencing=fencing, device=device),
        sign("tick", end - 0.01, task, fencing=fencing, device=device),
    ]
    return signs if killed else [*signs, sign("end", end, task, fencing=fencing, device=device)]


def done(task: str, fencing: int) -> Run:
    """Return the run of a task that is done."""
    return Run(task=task, run_id=f"run-{task}", ending="completed", result=f"{fencing}\n")


SOUND = Evidence(
    signs=[
        *work("a", 1, 2, fencing=10, killed=True),
        *work("a", 3, 4, fencing=11),
        *work("b", 5, 6, fencing=12),
        *work("b", 1, 9, fencing=12, device="host-1/slot-2"),
        *work("probe", 7, 8, fencing=13),
    ],
    runs=[done("a", 11), done("b", 12), done("probe", 13)],
    tasks=["a", "b", "probe"],
    probes={DEVICE: "probe"},
)


def rules(evidence: Evidence) -> list[str]:
    """Return the rules that are violated."""
    return [violation.rule for violation in judge(evidence)]


def with_runs(*runs: Run) -> Evidence:
    """Return the sound evidence with other runs of task `b`."""
    return replace(SOUND, runs=[run for run in SOUND.runs if run.task != "b"] + list(runs))


def test_a_sound_run_is_not_blamed() -> None:
    """Works that follow each other on a device, and ones at the same time on others, are as it should be."""
    assert judge(SOUND) == []


@pytest.mark.parametrize("begin", [3.5, 4.0])
def test_works_that_overlap_are_caught(begin: float) -> None:
    """A work that begins before the last sign of another on its device overlaps it; both lines are shown."""
    (violation,) = judge(replace(SOUND, signs=[*SOUND.signs, *work("b", begin, 4.5, fencing=12)]))
    assert violation.rule == f"two works overlap on {DEVICE}"
    assert violation.lines == (f"end 4 {DEVICE} 11 a", f"start {begin} {DEVICE} 12 b")


def test_a_killed_work_lives_until_its_last_tick() -> None:
    """A work without an end counts as alive up to its last sign, and no longer."""
    assert rules(replace(SOUND, signs=[*SOUND.signs, sign("tick", 2.9, fencing=10)])) == []
    late = replace(SOUND, signs=[*SOUND.signs, sign("tick", 3.1, fencing=10)])
    assert rules(late) == [f"two works overlap on {DEVICE}"]


def test_what_a_work_leaves_behind_belongs_to_it() -> None:
    """A tick after a work's own end, by a child of it that still lives, makes it longer."""
    assert rules(replace(SOUND, signs=[*SOUND.signs, sign("tick", 5.5, fencing=11)])) == [
        f"two works overlap on {DEVICE}"
    ]


def test_a_long_work_is_compared_with_all_that_begin_within_it() -> None:
    """One long work that covers several short ones overlaps each of them, not only the first."""
    signs = [*SOUND.signs, *work("a", 0.5, 20, fencing=9)]
    assert rules(replace(SOUND, signs=signs)).count(f"two works overlap on {DEVICE}") == 4


@pytest.mark.parametrize("fencing", [10, 12])
def test_fencing_numbers_that_do_not_grow_are_caught(fencing: int) -> None:
    """A later work on a device has a higher fencing number than all before it: neither a lower nor the same one."""
    signs = [*SOUND.signs, *work("b", 6.2, 6.4, fencing=fencing)]
    signs = [replace(one, work=999) if 6 < one.at < 7 else one for one in signs]
    (violation,) = judge(replace(SOUND, signs=signs))
    assert violation.rule == f"the fencing number of {DEVICE} does not grow"
    assert violation.lines == (f"start 5 {DEVICE} 12 b", f"start 6.2 {DEVICE} {fencing} b")


def test_a_missing_task_is_caught() -> None:
    """A task that was accepted and that the server does not know is missing; its works are nobody's then."""
    found = rules(with_runs())
    assert found[0] == "task b is missing"
    assert set(found[1:]) == {"work for task b, which is not there"}


def test_a_task_that_nobody_submitted_is_caught() -> None:
    """A task that came from nowhere is one too many."""
    signs = [*SOUND.signs, *work("c", 9, 10, fencing=14)]
    evidence = replace(SOUND, signs=signs, runs=[*SOUND.runs, done("c", 14)])
    assert rules(evidence) == ["nobody submitted task c"]


def test_two_submissions_with_one_task_are_caught() -> None:
    """Each submission has a task of its own."""
    assert rules(replace(SOUND, tasks=[*SOUND.tasks, "a"])) == ["2 submissions got the same task a"]


def test_a_task_that_ended_twice_is_caught() -> None:
    """Two runs of which neither came of a reset of the other are two ends."""
    assert rules(with_runs(done("b", 12), replace(done("b", 12), run_id="second"))) == ["task b ended 2 times"]


def test_a_reset_is_no_second_end() -> None:
    """A run that a reset has replaced does not count, however it ended; the one that came of it does."""
    first = Run(task="b", run_id="first", ending="terminated", reason="reset")
    second = replace(done("b", 12), run_id="second", replaces="first")
    assert rules(with_runs(first, second)) == []
    assert rules(with_runs(replace(done("b", 12), run_id="first"), second)) == []


def test_a_reset_that_leads_nowhere_is_caught() -> None:
    """When the run that came of a reset goes on for ever, the task has not ended, though its first run has."""
    first = replace(done("b", 12), run_id="first")
    second = Run(task="b", run_id="second", ending="running", replaces="first")
    assert rules(with_runs(first, second)) == ["task b has not ended in time"]


def test_a_task_that_goes_on_is_caught() -> None:
    """A task that has not ended when the time is up is reported."""
    assert rules(with_runs(Run(task="b", run_id="run-b", ending="running"))) == ["task b has not ended in time"]


@pytest.mark.parametrize(
    ("run", "right"),
    [
        (Run(task="b", run_id="1", ending="terminated", reason=OPERATOR), True),
        (Run(task="b", run_id="1", ending="terminated", reason="something else"), False),
        (Run(task="b", run_id="1", ending="canceled", cancel_requested=True), True),
        (Run(task="b", run_id="1", ending="canceled"), False),
        (Run(task="b", run_id="1", ending="failed"), False),
        (Run(task="b", run_id="1", ending="timed_out"), False),
    ],
)
def test_only_operators_end_tasks_otherwise_than_as_done(run: Run, right: bool) -> None:
    """A task may be terminated or cancelled by those who did so in the run; nothing may fail."""
    assert (rules(with_runs(run)) == []) is right


def test_a_result_out_of_thin_air_is_caught() -> None:
    """A task is done only with what one of its own works has printed at its end."""
    assert rules(with_runs(done("b", 11))) == ["task b has a result that no work had"]
    assert rules(with_runs(replace(done("b", 12), result=None))) == ["task b has a result that no work had"]


def test_a_device_left_leased_is_caught() -> None:
    """A device whose probe was not served by it is left leased, or broken."""
    probe = replace(done("probe", 13), ending="running")
    evidence = replace(SOUND, runs=[*SOUND.runs[:-1], probe], signs=SOUND.signs[:-3])
    assert rules(evidence) == [
        "task probe has not ended in time",
        f"device {DEVICE} is left leased, or cannot be used any more",
    ]


def test_works_are_told_apart_by_their_process() -> None:
    """The same lease that is worked on twice gives two works, in the order in which they began."""
    again = [replace(one, work=7, at=one.at + 0.5) for one in work("b", 5, 6, fencing=12)]
    assert [one.start.work for one in works([*again, *work("b", 5, 6, fencing=12)])[DEVICE]] == [112, 7]

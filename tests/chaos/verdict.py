"""The verdict: a pure function of what works wrote down and of what Temporal's histories say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from chaos.records import Evidence, Run, Violation, works

OPERATOR: Final = "chaos: terminated by the operator"
"""The reason of a termination that was our fault; one for any other reason is a violation."""


def judge(evidence: Evidence) -> list[Violation]:
    """Return what is wrong; nothing, if all is well."""
    return [
        *_overlaps(evidence),
        *_fencing(evidence),
        *_ends(evidence),
        *_results(evidence),
        *_left_leased(evidence),
    ]


def _overlaps(evidence: Evidence) -> Iterator[Violation]:
    for device, on_device in works(evidence.signs).items():
        latest = on_device[0]
        for work in on_device[1:]:
            if work.start.at <= latest.last.at:
                yield Violation(rule=f"two works overlap on {device}", lines=(latest.last.line, work.start.line))
            latest = max(latest, work, key=lambda one: one.last.at)


def _fencing(evidence: Evidence) -> Iterator[Violation]:
    for device, on_device in works(evidence.signs).items():
        highest = on_device[0]
        for work in on_device[1:]:
            if work.start.fencing <= highest.start.fencing:
                yield Violation(
                    rule=f"the fencing number of {device} does not grow", lines=(highest.start.line, work.start.line)
                )
            highest = max(highest, work, key=lambda one: one.start.fencing)


def _ends(evidence: Evidence) -> Iterator[Violation]:
    """Each task is there and has ended once: one run is its last one, and what that replaced was reset by hand."""
    runs: dict[str, list[Run]] = defaultdict(list)
    for run in evidence.runs:
        runs[run.task].append(run)
    for task in dict.fromkeys(evidence.tasks):
        if task not in runs:
            yield Violation(rule=f"task {task} is missing", lines=())
    for task, number in Counter(evidence.tasks).items():
        if number > 1:
            yield Violation(rule=f"{number} submissions got the same task {task}", lines=())
    for task, of_task in runs.items():
        if task not in evidence.tasks:
            yield Violation(rule=f"nobody submitted task {task}", lines=tuple(map(str, of_task)))
        yield from _ended_once(task, of_task)


def _ended_once(task: str, runs: Sequence[Run]) -> Iterator[Violation]:
    replaced = {run.replaces for run in runs}
    final = [run for run in runs if run.run_id not in replaced]
    if len(final) != 1:
        yield Violation(rule=f"task {task} ended {len(final)} times", lines=tuple(map(str, final or runs)))
    for run in runs:
        if run.ending == "running":
            yield Violation(rule=f"task {task} has not ended in time", lines=(str(run),))
    for run in final:
        if not _rightly_ended(run):
            yield Violation(
                rule=f"task {task} ended as it should not: {run.ending}", lines=(str(run), f"reason: {run.reason}")
            )


def _rightly_ended(run: Run) -> bool:
    match run.ending:
        case "canceled":
            return run.cancel_requested
        case "terminated":
            return run.reason == OPERATOR
        case "failed" | "timed_out":
            return False
    return True


def _results(evidence: Evidence) -> Iterator[Violation]:
    """What a task is said to have done, a work has done, and no work is of a task that is not there."""
    ended = {(sign.task, str(sign.fencing)) for sign in evidence.signs if sign.kind == "end"}
    for run in evidence.runs:
        if run.ending == "completed" and (run.task, (run.result or "").strip()) not in ended:
            yield Violation(rule=f"task {run.task} has a result that no work had", lines=(str(run), repr(run.result)))
    known = {run.task for run in evidence.runs}
    for on_device in works(evidence.signs).values():
        for work in on_device:
            if work.start.task not in known:
                yield Violation(rule=f"work for task {work.start.task}, which is not there", lines=(work.start.line,))


def _left_leased(evidence: Evidence) -> Iterator[Violation]:
    served = {(sign.device, sign.task) for sign in evidence.signs if sign.kind == "end"}
    for device, task in evidence.probes.items():
        if (device, task) not in served:
            lines = (str(run) for run in evidence.runs if run.task == task)
            yield Violation(rule=f"device {device} is left leased, or cannot be used any more", lines=tuple(lines))

"""What a chaos run prints at its end."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaos.faults import Injected
from chaos.plan import Plan
from chaos.records import Evidence, Violation, works


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a chaos run went."""

    plan: Plan
    injected: Sequence[Injected]
    evidence: Evidence
    resumed: int
    """Devices that were quarantined, and resumed by hand."""
    probed_at: float
    """When the probes were submitted, in seconds of CLOCK_BOOTTIME; infinity if that never came."""
    violations: Sequence[Violation]

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _lines(outcome: Outcome) -> Iterator[str]:
    injected, evidence = outcome.injected, outcome.evidence
    yield f"faults: {len(injected)} of {len(outcome.plan.faults)} that were planned found something to hit"
    for kind, count in sorted(Counter(fault.kind for fault in injected).items()):
        yield f"  {count:4d}  {kind}"
    endings = Counter(run.ending for run in evidence.runs)
    yield f"tasks: {len(evidence.tasks)}; runs: " + ", ".join(f"{n} {e}" for e, n in sorted(endings.items()))
    yield (
        f"attempts: {sum(map(len, works(evidence.signs).values()))} works began, "
        f"{sum(run.expired for run in evidence.runs)} attempts expired, "
        f"{sum(run.returned for run in evidence.runs)} were returned; {outcome.resumed} devices resumed by hand"
    )
    yield _longest(outcome)
    yield f"seed: {outcome.plan.seed}"
    yield from (f"VIOLATED: {violation}" for violation in outcome.violations)


def _longest(outcome: Outcome) -> str:
    """Say how long it took at most from a fault to the next work on a device that it hit, while there was work."""
    starts = {device: [work.start.at for work in found] for device, found in works(outcome.evidence.signs).items()}
    longest, which = 0.0, "no device was used again"
    for fault in outcome.injected:
        for device in fault.devices:
            times = starts.get(device, [])
            following = bisect_right(times, fault.at)
            if (
                following < len(times)
                and longest < times[following] - fault.at
                and times[following] < outcome.probed_at
            ):
                longest, which = times[following] - fault.at, f"{device} after: {fault.kind} ({fault.what})"
    return f"longest time from a fault to the next use of the device: {longest:.1f} s, {which}"

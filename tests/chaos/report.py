"""What a chaos run prints at its end."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence

from chaos.faults import Injected
from chaos.plan import Plan
from chaos.records import Evidence, Violation, works


def report(
    plan: Plan, injected: Sequence[Injected], evidence: Evidence, probed_at: float, violations: Sequence[Violation]
) -> str:
    """Return the report."""
    return "\n".join(_lines(plan, injected, evidence, probed_at, violations))


def _lines(
    plan: Plan, injected: Sequence[Injected], evidence: Evidence, probed_at: float, violations: Sequence[Violation]
) -> Iterator[str]:
    counts = Counter(fault.kind for fault in injected)
    yield f"faults: {len(injected)} of {len(plan.faults)} that were planned found something to hit"
    for kind, count in sorted(counts.items()):
        yield f"  {count:4d}  {kind}"
    endings = Counter(run.ending for run in evidence.runs)
    yield f"tasks: {len(evidence.tasks)}; runs: " + ", ".join(f"{n} {e}" for e, n in sorted(endings.items()))
    begun = sum(map(len, works(evidence.signs).values()))
    yield (
        f"attempts: {begun} works began, {sum(run.expired for run in evidence.runs)} attempts expired, "
        f"{sum(run.returned for run in evidence.runs)} were returned"
    )
    yield _longest(injected, evidence, probed_at)
    yield f"seed: {plan.seed}"
    yield from (f"VIOLATED: {violation}" for violation in violations)


def _longest(injected: Sequence[Injected], evidence: Evidence, probed_at: float) -> str:
    """Say how long it took at most from a fault to the next work on a device that it hit, while there was work."""
    starts = {device: [work.start.at for work in found] for device, found in works(evidence.signs).items()}
    longest, which = 0.0, "no device was used again"
    for fault in injected:
        for device in fault.devices:
            times = starts.get(device, [])
            following = bisect_right(times, fault.at)
            if following < len(times) and times[following] < probed_at and times[following] - fault.at > longest:
                longest, which = times[following] - fault.at, f"{device} after: {fault.kind} ({fault.what})"
    return f"longest time from a fault to the next use of the device: {longest:.1f} s, {which}"

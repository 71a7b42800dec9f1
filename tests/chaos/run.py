"""`make chaos`: a few hundred short tasks while everything round them is killed, stopped and cut off."""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from temporalio.runtime import Runtime, TelemetryConfig

from chaos.evidence import gather
from chaos.faults import Injector
from chaos.operation import Operation
from chaos.plan import Kind, Plan, draw
from chaos.report import Outcome
from chaos.site import running_site
from chaos.verdict import judge

SETTLED_WITHIN: Final = 150.0
"""Seconds in which, everything being healed, all tasks have ended and every device has served its probe."""


async def run(plan: Plan, folder: Path) -> Outcome:
    """Carry out a plan, and judge what came of it; all logs are in `folder`."""
    async with running_site(folder, hosts=plan.hosts, slots=plan.slots) as site:
        injector, operation = Injector(site), Operation(site)
        await operation.carry_out(plan, injector)
        probed_at = await operation.settle(SETTLED_WITHIN)
        evidence = await gather(site.client, site.work_log, operation.tasks, operation.probes)
    return Outcome(
        plan=plan,
        injected=injector.injected,
        evidence=evidence,
        resumed=operation.resumed,
        probed_at=probed_at,
        violations=judge(evidence),
    )


def main() -> int:
    """Return 0 if all rules held, else 1."""
    options = _options()
    kinds = [Kind[name] for name in options.kinds.split(",")] if options.kinds else tuple(Kind)
    plan = draw(options.seed, seconds=options.seconds, tasks=options.tasks, hosts=options.hosts, kinds=kinds)
    folder = Path(tempfile.mkdtemp(prefix="toolcrib-chaos-"))
    print(f"chaos: seed {plan.seed}, {plan.seconds:g} s, {len(plan.jobs)} tasks, logs in {folder}", flush=True)
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=None)))  # what fails is meant to
    begun = time.monotonic()
    try:
        outcome = asyncio.run(run(plan, folder))
    except BaseException:
        print(f"chaos did not come to its end; seed: {plan.seed}, logs: {folder}", file=sys.stderr)
        raise
    print(outcome)
    print(f"time: {time.monotonic() - begun:.0f} s")
    if outcome.violations:
        print(f"{len(outcome.violations)} violations; logs: {folder}")
        print(f"again: make chaos {_words(options)}")
        return 1
    print("all rules held")
    if not options.keep:
        shutil.rmtree(folder)
    return 0


def _words(options: argparse.Namespace) -> str:
    given = {name: getattr(options, name) for name in ("seed", "seconds", "tasks", "hosts", "kinds")}
    return " ".join(f"{name.upper()}={value}" for name, value in given.items() if value is not None)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="default: any")
    parser.add_argument("--seconds", type=float, default=300.0, help="how long there are faults (300)")
    parser.add_argument("--tasks", type=int, default=300, help="how many tasks are submitted (300)")
    parser.add_argument("--hosts", type=int, default=3, help="of two slots each (3)")
    parser.add_argument("--kinds", help="only these faults: " + ",".join(kind.name for kind in Kind))
    parser.add_argument("--keep", action="store_true", help="keep the logs even if all rules held")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

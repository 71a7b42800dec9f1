"""Measures whole tasks beside the bare one-activity workflow, in one run: rates, latencies, events and memory.

    python benchmarks/lifecycle.py [--tasks 200] [--devices 20] [--rounds 5] [--soak 1000] [--json FILE]

The workers run in a process of their own, as they do in a lab; only ratios mean anything on another machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
from bare import QUEUE, Bare
from rich.console import Console
from rich.table import Table
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from toolcrib.client import Toolcrib
from toolcrib.scheduling.names import pool_workflow_id
from toolcrib.worker.connection import connect_to
from toolcrib.worker.embedded import EmbeddedServer
from toolcrib.worker.target import plain_target

GOAL = ":"
TARGETS = {"rate": 0.50, "events": 22, "events_queued": 28, "events_pool": 6, "idle": 2.5, "memory": 250}


@dataclass(frozen=True)
class Lap:
    """Many calls at one width: calls a second, and percentiles of their times in milliseconds."""

    rate: float
    p50: float
    p99: float


@dataclass(frozen=True)
class Bench:
    """What is measured against."""

    client: Client
    crib: Toolcrib
    worker: psutil.Process

    async def bare(self) -> None:
        """Run one bare workflow."""
        await self.client.execute_workflow(Bare.run, id=f"bare-{uuid.uuid4().hex}", task_queue=QUEUE)

    async def task(self) -> str:
        """Run one task, and return its id."""
        handle = await self.crib.submit(GOAL)
        await handle.result()
        return handle.id

    async def memory(self) -> float:
        """Return what the workers' process takes, in MiB."""
        return float(self.worker.memory_info().rss) / 2**20

    async def pool_events(self) -> int:
        """Return how many events the pool has written in all its runs."""
        total = 0
        async for run in self.client.list_workflows(f"WorkflowId = '{pool_workflow_id('bench')}'"):
            found = await self.client.get_workflow_handle(run.id, run_id=run.run_id).describe()
            total += found.history_length
        return total

    async def event_kinds(self, task_id: str) -> Counter[str]:
        """Return how often each kind of event is in a task's history."""
        events = self.client.get_workflow_handle(task_id).fetch_history_events()
        return Counter([EventType.Name(event.event_type).removeprefix("EVENT_TYPE_") async for event in events])


async def lap(count: int, width: int, call: Callable[[], Awaitable[Any]]) -> Lap:
    """Make `count` calls, `width` at a time."""
    gate, took = asyncio.Semaphore(width), list[float]()

    async def one() -> None:
        async with gate:
            begin = time.perf_counter()
            await call()
            took.append(1e3 * (time.perf_counter() - begin))

    begin = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(count)))
    whole = time.perf_counter() - begin
    took.sort()
    return Lap(rate=count / whole, p50=took[len(took) // 2], p99=took[int(len(took) * 0.99)])


async def interleaved(bench: Bench, count: int, width: int, rounds: int) -> dict[str, Any]:
    """Run bare workflows and tasks in turn, and return the medians of both and of their ratio."""
    pairs = [(await lap(count, width, bench.bare), await lap(count, width, bench.task)) for _ in range(rounds)]
    return {
        "width": width,
        "bare": asdict(_median([bare for bare, _ in pairs])),
        "task": asdict(_median([task for _, task in pairs])),
        "ratio": statistics.median(task.rate / bare.rate for bare, task in pairs),
        "latency_ratio": statistics.median(task.p50 / bare.p50 for bare, task in pairs),
    }


def _median(laps: list[Lap]) -> Lap:
    return Lap(*(statistics.median(getattr(one, name) for one in laps) for name in ("rate", "p50", "p99")))


async def measure(bench: Bench, options: argparse.Namespace) -> dict[str, Any]:
    """Return all figures."""
    await lap(20, 5, bench.bare)
    await lap(20, 5, bench.task)
    before = await bench.pool_events()
    widths = [
        await interleaved(bench, max(20, options.tasks // 5), 1, 3),
        await interleaved(bench, options.tasks, options.devices, options.rounds),
        await interleaved(bench, options.tasks, 5 * options.devices, 3),
    ]
    pool_before = await bench.pool_events()
    await lap(options.tasks, options.devices, bench.task)
    pool = (await bench.pool_events() - pool_before) / options.tasks
    direct = await bench.event_kinds(await bench.task())
    queued = await queued_events(bench, options.devices)
    await lap(options.soak, options.devices, bench.task)
    return {
        "widths": widths,
        "events": dict(direct),
        "events_queued": dict(queued),
        "events_pool": pool,
        "pool_events_all": await bench.pool_events() - before,
        "memory_mib": await bench.memory(),
    }


async def queued_events(bench: Bench, devices: int) -> Counter[str]:
    """Return the events of a task that waited in the queue."""
    blockers = [await bench.crib.submit("sleep 1") for _ in range(devices)]
    waiting = await bench.crib.submit(GOAL)
    await waiting.result()
    for blocker in blockers:
        await blocker.result()
    return await bench.event_kinds(waiting.id)


@asynccontextmanager
async def ready_bench(devices: int) -> AsyncIterator[Bench]:
    """Start a server in memory and the workers' process."""
    with tempfile.TemporaryDirectory() as home:
        async with EmbeddedServer(port=0, headless=True) as server:
            program = [sys.executable, str(Path(__file__).with_name("workers.py")), server.address, home, str(devices)]
            workers = await asyncio.create_subprocess_exec(*program, stdout=asyncio.subprocess.PIPE)
            assert workers.stdout is not None
            try:
                if (await workers.stdout.readline()).strip() != b"ready":
                    raise SystemExit("the workers did not start")
                client = await connect_to(plain_target(server.address))
                yield Bench(client, Toolcrib(client, pool="bench"), psutil.Process(workers.pid))
            finally:
                workers.terminate()
                await workers.wait()


def show(result: dict[str, Any]) -> None:
    """Print the figures beside what they should be."""
    table = Table("width", "bare/s", "tasks/s", "ratio", "bare p50", "task p50", "p50 ratio", "task p99")
    for row in result["widths"]:
        bare, task = row["bare"], row["task"]
        table.add_row(
            str(row["width"]),
            f"{bare['rate']:.1f}",
            f"{task['rate']:.1f}",
            f"{row['ratio']:.2f}",
            f"{bare['p50']:.0f} ms",
            f"{task['p50']:.0f} ms",
            f"{row['latency_ratio']:.2f}",
            f"{task['p99']:.0f} ms",
        )
    console = Console()
    console.print(table)
    for name, at_most, value in (
        ("events a task", TARGETS["events"], sum(result["events"].values())),
        ("events a task through the queue", TARGETS["events_queued"], sum(result["events_queued"].values())),
        ("events in the pool a task", TARGETS["events_pool"], result["events_pool"]),
        ("workers' memory, MiB", TARGETS["memory"], result["memory_mib"]),
    ):
        console.print(f"{name}: {value:.1f} (at most {at_most})")
    for kind, count in sorted(result["events_queued"].items(), key=lambda item: -item[1]):
        console.print(f"  {count:3} ({result['events'].get(kind, 0)} without the queue)  {kind}")


async def main(options: argparse.Namespace) -> None:
    """Measure, show and write."""
    async with ready_bench(options.devices) as bench:
        result = await measure(bench, options)
    show(result)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(f"written to {options.json}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for option, default in (("--tasks", 200), ("--devices", 20), ("--rounds", 5), ("--soak", 1000)):
        parser.add_argument(option, type=int, default=default)
    parser.add_argument("--json", type=Path, default=Path("build/bench.json"))
    asyncio.run(main(parser.parse_args()))

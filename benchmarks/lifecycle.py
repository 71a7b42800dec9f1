"""Measures whole tasks beside the bare one-activity workflow, in one run: rates, latencies, events, CPU and memory.

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

import cpu
import psutil
from bare import QUEUE, Bare
from rich.console import Console
from rich.table import Table
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from workers import POOLS

from toolcrib.client import TaskHandle, Toolcrib
from toolcrib.scheduling.names import pool_workflow_id
from toolcrib.worker.connection import connect_to
from toolcrib.worker.embedded import EmbeddedServer
from toolcrib.worker.target import plain_target


@dataclass(frozen=True)
class Lap:
    """Many calls at one width: calls a second, and percentiles of their times in milliseconds."""

    rate: float
    p50: float
    p99: float


class Bench:
    """What is measured against: the server, the workers' process, and a client of each pool."""

    def __init__(self, client: Client, workers: psutil.Process) -> None:
        self._client = client
        self._workers = workers
        self._cribs = {pool: Toolcrib(client, pool=pool) for pool in POOLS}

    async def bare(self) -> None:
        """Run one bare workflow."""
        await self._client.execute_workflow(Bare.run, id=f"bare-{uuid.uuid4().hex}", task_queue=QUEUE)

    async def nothing(self) -> str:
        """Run one task that does nothing, and return its id: what toolcrib itself costs."""
        return await self._task("nothing")

    async def shell(self) -> str:
        """Run one task that is an empty shell script, and return its id."""
        return await self._task("shell")

    async def submit(self, goal: str) -> TaskHandle:
        """Submit a shell script."""
        return await self._cribs["shell"].submit(goal)

    async def _task(self, pool: str) -> str:
        handle = await self._cribs[pool].submit(":")
        await handle.result()
        return handle.id

    async def cost(self, count: int, width: int, call: Callable[[], Awaitable[Any]]) -> cpu.Spent:
        """Return the milliseconds of CPU that one of `count` calls costs, by place."""
        return await cpu.per_task(self._workers, count, lambda: lap(count, width, call))

    async def memory(self) -> float:
        """Return what the workers' process takes, in MiB."""
        return float(self._workers.memory_info().rss) / 2**20

    async def pool_events(self) -> int:
        """Return how many events the pool has written in all its runs."""
        total = 0
        async for run in self._client.list_workflows(f"WorkflowId = '{pool_workflow_id('shell')}'"):
            found = await self._client.get_workflow_handle(run.id, run_id=run.run_id).describe()
            total += found.history_length
        return total

    async def event_kinds(self, task_id: str) -> Counter[str]:
        """Return how often each kind of event is in a task's history."""
        events = self._client.get_workflow_handle(task_id).fetch_history_events()
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


async def interleaved(bench: Bench, count: int, width: int, rounds: int) -> list[dict[str, Any]]:
    """Run bare workflows and both kinds of tasks in turn; return medians, of their ratios to the bare ones as well."""
    kinds = {"bare": bench.bare, "nothing": bench.nothing, "shell": bench.shell}
    laps = [{kind: await lap(count, width, call) for kind, call in kinds.items()} for _ in range(rounds)]
    return [
        {
            "width": width,
            "kind": kind,
            **asdict(_median([turn[kind] for turn in laps])),
            "rate_ratio": statistics.median(turn[kind].rate / turn["bare"].rate for turn in laps),
            "p50_ratio": statistics.median(turn[kind].p50 / turn["bare"].p50 for turn in laps),
        }
        for kind in kinds
    ]


def _median(laps: list[Lap]) -> Lap:
    return Lap(*(statistics.median(getattr(one, name) for one in laps) for name in ("rate", "p50", "p99")))


async def measure(bench: Bench, options: argparse.Namespace) -> dict[str, Any]:
    """Return all figures."""
    for call in (bench.bare, bench.nothing, bench.shell):
        await lap(20, 5, call)
    rows = [
        *await interleaved(bench, max(20, options.tasks // 5), 1, 3),
        *await interleaved(bench, options.tasks, options.devices, options.rounds),
        *await interleaved(bench, options.tasks, 5 * options.devices, 3),
    ]
    before = await bench.pool_events()
    await lap(options.tasks, options.devices, bench.shell)
    pool_events = (await bench.pool_events() - before) / options.tasks
    await lap(options.soak, options.devices, bench.shell)
    tasks = {"nothing": bench.nothing, "shell": bench.shell}
    return {
        "rows": rows,
        "events": dict(await bench.event_kinds(await bench.shell())),
        "events_queued": dict(await queued_events(bench, options.devices)),
        "events_pool": pool_events,
        "cpu_ms": {kind: await bench.cost(options.tasks, options.devices, call) for kind, call in tasks.items()},
        "cpu_ms_of_sh": cpu.empty_script(),
        "memory_mib": await bench.memory(),
    }


async def queued_events(bench: Bench, devices: int) -> Counter[str]:
    """Return the events of a task that waited in the queue."""
    blockers = [await bench.submit("sleep 1") for _ in range(devices)]
    waiting = await bench.submit(":")
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
                yield Bench(client, psutil.Process(workers.pid))
            finally:
                workers.terminate()
                await workers.wait()


def show(result: dict[str, Any]) -> None:
    """Print the figures beside what they should be."""
    table = Table("width", "what", "a second", "of bare", "p50", "of bare", "p99")
    for row in result["rows"]:
        table.add_row(
            str(row["width"]),
            row["kind"],
            f"{row['rate']:.1f}",
            f"{row['rate_ratio']:.2f}",
            f"{row['p50']:.0f} ms",
            f"{row['p50_ratio']:.2f}",
            f"{row['p99']:.0f} ms",
            end_section=row["kind"] == "shell",
        )
    console = Console()
    console.print(table)
    for name, at_most, value in (
        ("events a task", 22, sum(result["events"].values())),
        ("events a task through the queue", 28, sum(result["events_queued"].values())),
        ("events in the pool a task", 6, result["events_pool"]),
        ("workers' memory, MiB", 250, result["memory_mib"]),
    ):
        console.print(f"{name}: {value:.1f} (at most {at_most})")
    for line in cpu.lines(result["cpu_ms"], result["cpu_ms_of_sh"]):
        console.print(line)
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

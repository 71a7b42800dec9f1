"""What tasks cost in CPU, by the process that spends it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

import psutil

Spent = dict[str, float]
"""Seconds of CPU, by place."""
EMPTY_SCRIPTS = 200


def spent(workers: psutil.Process) -> Spent:
    """Return what has been spent so far by the server, the workers' process, its guards, and all that these ran."""
    servers = [each for each in psutil.Process().children() if each.pid != workers.pid]
    guards = [each.cpu_times() for each in workers.children()]
    own = workers.cpu_times()
    return {
        "server": sum(times.user + times.system for times in (each.cpu_times() for each in servers)),
        "worker": own.user + own.system,
        "guard": sum(times.user + times.system for times in guards),
        "keeper and work": sum(times.children_user + times.children_system for times in guards),
    }


async def per_task(workers: psutil.Process, count: int, run: Callable[[], Awaitable[Any]]) -> Spent:
    """Return the milliseconds that each of the `count` tasks of `run` costs."""
    before = spent(workers)
    await run()
    return {place: 1e3 * (after - before[place]) / count for place, after in spent(workers).items()}


def empty_script() -> float:
    """Return the milliseconds that `sh -c true` costs when nobody looks after it, fork and exec included."""
    before = os.times()
    for _ in range(EMPTY_SCRIPTS):  # as a whole: one costs less than a tick of the clock
        os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", "true"], os.environ), 0)
    after = os.times()
    return 1e3 * (sum(after[:4]) - sum(before[:4])) / EMPTY_SCRIPTS


def lines(costs: dict[str, Spent], alone: float) -> list[str]:
    """Return the words for what a shell task costs beside one whose runner does nothing."""
    nothing, shell = costs["nothing"], costs["shell"]
    more = {place: shell[place] - nothing[place] for place in shell}
    where = ", ".join(f"{place} {value:+.1f}" for place, value in more.items())
    difference = f"{sum(more.values()):.1f} ms more: {where}"
    return [
        f"CPU of a task whose runner does nothing: {sum(nothing.values()):.1f} ms",
        f"CPU of a shell task with `true`: {sum(shell.values()):.1f} ms, {difference}",
        f"  (`sh -c true` alone, from a small process: {alone:.1f} ms)",
    ]

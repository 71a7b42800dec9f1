"""What an earlier life left running is found by its environment, wherever it went."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from uuid import uuid4

from support.guarded import MARK, marked
from toolcrib.activities.leftovers import HOST, LEASE, LOCKS, end_leftovers

STUBBORN = """trap '' TERM; (setsid sh -c 'trap "" TERM; echo up; exec sleep 300' &); echo up; exec sleep 300"""


def stray(**marks: str) -> subprocess.Popen[str]:
    """Start a work that nobody watches, with a child that has left its session; return once both are there."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", STUBBORN], stdout=subprocess.PIPE, text=True, env={**os.environ, **marks}
    )
    assert process.stdout
    assert [process.stdout.readline() for _ in range(2)] == ["up\n"] * 2
    return process


async def test_marked_processes_end() -> None:
    """All processes that carry the marks end, those in other sessions as well, and their leases are named."""
    host = uuid4().hex
    with stray(**{HOST: host, LEASE: "task-1.1.7", LOCKS: "/l"}) as process:
        killed = await end_leftovers({HOST: host, LOCKS: "/l"})
        assert process.wait(10) == -9
    assert len(killed) == 2
    assert set(killed.values()) == {"task-1.1.7"}
    assert await end_leftovers({HOST: host}) == {}


async def test_others_are_spared() -> None:
    """Another host's works, those of a host of this id with other locks, and what has no lease are left alone."""
    host = uuid4().hex
    others = [
        {HOST: host + "2", LEASE: "l", LOCKS: "/l"},
        {HOST: host, LEASE: "l", LOCKS: "/l/2"},
        {HOST: host, LOCKS: "/l"},
        {LEASE: "l", LOCKS: "/l", "OTHER": f"{HOST}={host}"},
    ]
    processes = [stray(**{MARK: host, **marks}) for marks in others]
    try:
        assert await end_leftovers({HOST: host, LOCKS: "/l"}) == {}
        assert [process.poll() for process in processes] == [None] * len(others)
    finally:
        for pid in marked(host):
            os.kill(pid, signal.SIGKILL)
        for process in processes:
            process.communicate()


SELF = """
import asyncio, sys
from toolcrib.activities.leftovers import HOST, end_leftovers

print(asyncio.run(end_leftovers({HOST: sys.argv[1]})))
"""


def test_a_worker_that_a_work_has_started_spares_itself() -> None:
    """The process that searches, and those it descends from, are no leftovers."""
    host = uuid4().hex
    ran = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -c '{SELF}' {host}; echo alive"],
        env={**os.environ, HOST: host, LEASE: "task-1.1.7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ran.stdout, ran.stderr) == ("{}\nalive\n", "")

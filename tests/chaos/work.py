"""What a task of a chaos run does: `python -I -S work.py LOG SECONDS [stray]`. Standard library only: it starts often.

It notes itself in LOG, a line at a time: kind, nanoseconds of CLOCK_BOOTTIME, device, fencing number, task and the
work's process. With `stray` it leaves behind a child in a session of its own that notes on, until somebody ends it.
"""

from __future__ import annotations

import os
import signal
import sys
import time

TICK = 0.05
"""Seconds between two signs of life."""
LONGEST_STRAY = 30.0
"""Seconds after which a child that nobody has ended goes by itself."""


def main() -> None:
    """Work, and print the fencing number at the end, so that it is in the task's history."""
    file, seconds = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644), float(sys.argv[2])
    known = os.environ
    device = f"{known['TOOLCRIB_HOST_ID']}/{known['TOOLCRIB_DEVICE_ID']}"
    who = f"{device} {known['TOOLCRIB_FENCING']} {known['TOOLCRIB_TASK_ID']} {os.getpid()}"
    begun = note(file, "start", who)
    if sys.argv[3:] == ["stray"] and not os.fork():
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        tick(file, who, begun + LONGEST_STRAY)
        os._exit(0)
    tick(file, who, begun + seconds)
    note(file, "end", who)
    print(known["TOOLCRIB_FENCING"])  # noqa: T201 - the task's result


def note(file: int, kind: str, who: str) -> float:
    """Append one line, in one write, and return its time in seconds."""
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    os.write(file, f"{kind} {now} {who}\n".encode())
    return now / 1e9


def tick(file: int, who: str, end: float) -> None:
    """Show life until `end`."""
    while (left := end - time.clock_gettime(time.CLOCK_BOOTTIME)) > 0:
        time.sleep(min(TICK, left))
        note(file, "tick", who)


if __name__ == "__main__":
    main()

"""The processes below this one: how they are found, signalled and reaped. Standard library only; see guard_main.py."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37


def boottime() -> float:
    """Return seconds since boot, sleep of the machine included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def become_subreaper() -> None:
    """Have every orphan below this process become its child, whatever session it is in.

    Raises:
        OSError: the kernel refused.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot become a subreaper")


def is_subreaper() -> bool:
    """Return whether this process is one."""
    flag = ctypes.c_int()
    return ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(flag), 0, 0, 0) == 0 and bool(flag.value)


def children(pid: int) -> list[int]:
    """Return the children of `pid`, of all its threads; none if it is gone.

    Like every look at living processes it may miss one that is being forked: ask again until none is left.
    """
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    return found


def descendants(roots: Iterable[int]) -> list[int]:
    """Return all processes below `roots`, parents before their children."""
    found = [child for root in roots for child in children(root)]
    for pid in found:  # grows while it is walked
        found += children(pid)
    return found


def send_signals(pids: Iterable[int], *signals: signal.Signals) -> None:
    """Send each of `signals` to each of `pids`; one that is gone, or another user's, is passed over."""
    for pid in pids:
        for number in signals:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def reap() -> tuple[dict[int, int], bool]:
    """Collect the children that have ended.

    Returns:
        Their exit codes (negative: signals) by pid, and whether any child is left.
    """
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended, False
        if not pid:
            return ended, True
        ended[pid] = os.waitstatus_to_exitcode(status)


class ChildEvents:
    """A file descriptor that becomes readable when a child has ended."""

    def __init__(self) -> None:
        self.fd, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def clear(self) -> None:
        """Make it wait for the next one."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.fd, 4096):
                pass


def close_all_but(kept: Iterable[int]) -> None:
    """Close every file descriptor above standard error that is not one of `kept`."""
    start = 3
    for fd in sorted(kept):
        os.closerange(start, fd)
        start = max(start, fd + 1)
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))

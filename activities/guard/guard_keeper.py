"""The keeper of one work: starts it, watches its whole tree of processes, ends it. Standard library only.

Over its channel, in JSON lines: first the order `{argv, env, cwd, deadline}`, answered by `{started}` or `{failed}`;
then `{kill: grace}` and `{extend: deadline}`; and at the end, when no process of the tree is left, `{exited}`.
A channel that closes (the worker is gone) or a lifeline that closes (the guard is gone) ends the tree at once. When a
keeper was killed, the guard ends its tree and says `{bereaved}` in its place.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import socket
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from toolcrib.activities.guard import guard_tree as tree
else:  # run by path, without toolcrib
    import guard_tree as tree

LEFTOVER_GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL for what a work leaves behind when it ends by itself."""
LONGEST_NAP = 0.5
"""Seconds; the clock of poll() stands still while the machine sleeps, a deadline does not."""
SWEEP_PAUSE = 0.02
"""Seconds between two looks for what SIGKILL has not ended yet."""


class Keeper:
    """Runs one work in a process of its own, forked for it."""

    def __init__(self, channel: socket.socket, lifeline: int, stdio: tuple[int, ...]) -> None:
        self._channel = channel
        self._lifeline = lifeline
        self._stdio = stdio
        self._inbox = b""
        self._work = 0
        self._exit_code: int | None = None
        self._deadline = math.inf
        self._kill_at = math.inf
        self._told_to_end = False
        self._orphaned = False

    def run(self) -> None:
        """Serve from the order to the end of the tree."""
        os.setsid()
        tree.become_subreaper()
        events = tree.ChildEvents()
        order = self._take_order()
        if order is None:
            return
        failure = self._start(order)
        if failure:
            self._tell({"failed": failure})
            return
        self._tell({"started": self._work})
        self._channel.setblocking(False)
        self._watch(events)
        if not self._orphaned:
            self._tell({"exited": self._exit_code})

    def _take_order(self) -> dict[str, Any] | None:
        while b"\n" not in self._inbox:
            received = self._channel.recv(1 << 18)
            if not received:
                return None
            self._inbox += received
        line, _, self._inbox = self._inbox.partition(b"\n")
        order: dict[str, Any] = json.loads(line)
        return order

    def _start(self, order: dict[str, Any]) -> tuple[str, int] | None:
        """Fork and exec; return the stage that failed and its errno, or None."""
        if order["deadline"] is not None:
            self._deadline = order["deadline"]
        failed, report = os.pipe()  # closed by the exec: silence means that it succeeded
        try:
            self._work = os.fork()
        except OSError as error:
            return "fork", error.errno or 0
        if not self._work:
            _become(order, self._stdio, report)
        for fd in (report, *self._stdio):
            os.close(fd)
        with os.fdopen(failed, "rb") as reports:
            stage, _, number = reports.read().decode().partition(" ")
        return (stage, int(number)) if stage else None

    def _watch(self, events: tree.ChildEvents) -> None:
        poller = select.poll()
        for fd in (events.fd, self._lifeline, self._channel.fileno()):
            poller.register(fd, select.POLLIN)
        while self._collect():
            for fd, _ in poller.poll(self._sweep_or_nap() * 1000):
                if fd == events.fd:
                    events.clear()
                elif fd == self._lifeline or not self._listen():
                    self._orphaned, self._kill_at = True, 0.0
                    poller.unregister(fd)

    def _collect(self) -> bool:
        """Reap; return whether anything of the tree is left."""
        ended, left = tree.reap()
        if self._work in ended:
            self._exit_code = ended[self._work]
            if left:
                self._end(LEFTOVER_GRACE)
        return left

    def _sweep_or_nap(self) -> float:
        """Kill everything if it is time to; return for how many seconds to wait."""
        due = min(self._kill_at, self._deadline) - tree.boottime()
        if due > 0:
            return min(due, LONGEST_NAP)
        self._kill_at = 0.0  # no extension that comes too late stops this half-way
        tree.send_signals(tree.descendants([os.getpid()]), signal.SIGKILL)
        return SWEEP_PAUSE

    def _listen(self) -> bool:
        """Take what the worker says; return whether it is still there."""
        try:
            received = self._channel.recv(4096)
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        *lines, self._inbox = (self._inbox + received).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "kill" in message:
                self._end(message["kill"])
            else:
                self._deadline = message["extend"]
        return bool(received)

    def _end(self, grace: float) -> None:
        self._kill_at = min(self._kill_at, tree.boottime() + grace)
        if not self._told_to_end:
            self._told_to_end = True
            tree.send_signals(tree.descendants([os.getpid()]), signal.SIGTERM, signal.SIGCONT)

    def _tell(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # a worker that is gone needs no answer
            self._channel.sendall(json.dumps(message).encode() + b"\n")


def _become(order: dict[str, Any], stdio: tuple[int, ...], report: int) -> NoReturn:
    """Turn this process into the work, or report the stage and errno and exit."""
    stage = "stdio"
    try:
        os.setpgid(0, 0)
        for number, fd in enumerate(stdio):
            os.dup2(fd, number)
        stage = "cwd"
        os.chdir(order["cwd"])
        stage = "exec"
        _reset_signals()
        os.execvpe(order["argv"][0], order["argv"], order["env"])  # noqa: S606 - to run it is the purpose
    except OSError as error:
        os.write(report, f"{stage} {error.errno}".encode())
    finally:
        os._exit(127)


def _reset_signals() -> None:
    """Undo what guard and keeper ignore, and what their worker was started with (nohup)."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())

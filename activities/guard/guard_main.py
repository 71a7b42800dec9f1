"""The guard process: `python -I -S guard_main.py FD`, where FD is its socket to the worker.

Each message of the worker is a number and so many file descriptors: a channel, the stdin, stdout and stderr of a work,
and the locks of its device, which are kept open until the work is gone; the guard forks a keeper for it, and the worker
talks to the keeper from then on. The guard outlives no worker: when the socket closes it kills all that is below it.
It uses the standard library only, has one thread, and so may fork safely.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from toolcrib.activities.guard import guard_keeper as keeper
    from toolcrib.activities.guard import guard_tree as tree
else:  # run by path, without toolcrib
    sys.path.append(str(Path(__file__).parent))
    import guard_keeper as keeper
    import guard_tree as tree

_INT = 4
_MAX_FDS = 8
IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


class Kept:
    """The guard's copies of what a keeper has open: they close only when the keeper's tree is gone."""

    def __init__(self, channel: socket.socket, locks: tuple[int, ...]) -> None:
        self.channel = channel
        self._locks = locks

    @property
    def fds(self) -> tuple[int, ...]:
        """All of them."""
        return self.channel.fileno(), *self._locks

    def tell(self, message: dict[str, Any]) -> None:
        """Say the last word in the keeper's place."""
        with contextlib.suppress(OSError):
            self.channel.send(json.dumps(message).encode() + b"\n")

    def close(self) -> None:
        """Close them: the device first, so that it is free when the worker hears of it."""
        for fd in self._locks:
            os.close(fd)
        self.channel.close()


class GuardProcess:
    """Forks keepers, and ends what a dead keeper leaves behind."""

    def __init__(self, worker: socket.socket) -> None:
        self._worker = worker
        self._events = tree.ChildEvents()
        # Held open by this process alone: keepers see it close when the guard dies.
        self._lifeline, self._alive = os.pipe()
        self._keepers: dict[int, Kept] = {}
        self._bereaved: list[Kept] = []

    def run(self) -> None:
        """Serve until the worker is gone, then end everything."""
        poller = select.poll()
        poller.register(self._events.fd, select.POLLIN)
        poller.register(self._worker, select.POLLIN)
        serving = True
        while serving:
            for fd, _ in poller.poll(keeper.SWEEP_PAUSE * 1000 if self._bereaved else None):
                if fd == self._events.fd:
                    self._events.clear()
                else:
                    serving = self._serve()
            self._bury()
        while tree.reap()[1]:
            tree.send_signals(tree.descendants([os.getpid()]), signal.SIGKILL)
            select.select([self._events.fd], [], [], keeper.SWEEP_PAUSE)
            self._events.clear()

    def _serve(self) -> bool:
        """Fork a keeper for the next work; return whether the worker is still there."""
        try:
            message, fds = _receive(self._worker)
        except ConnectionError:
            return False
        if not message:
            return False
        if not fds:
            return True
        stdio, kept = tuple(fds[1:4]), Kept(socket.socket(fileno=fds[0]), tuple(fds[4:]))
        if len(fds) < int(message):
            kept.tell({"failed": ("stdio", errno.EMFILE)})
            kept.close()
        else:
            self._fork(kept, stdio)
        for fd in stdio:
            os.close(fd)
        return True

    def _fork(self, kept: Kept, stdio: tuple[int, ...]) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            kept.tell({"failed": ("fork", error.errno)})
            kept.close()
        else:
            if not pid:
                self._keep(kept, stdio)
            self._keepers[pid] = kept

    def _keep(self, kept: Kept, stdio: tuple[int, ...]) -> NoReturn:
        code = 1
        try:
            tree.close_all_but((*kept.fds, self._lifeline, *stdio))
            keeper.Keeper(kept.channel, self._lifeline, stdio).run()
            code = 0
        finally:
            if code:
                sys.excepthook(*sys.exc_info())
            os._exit(code)

    def _bury(self) -> None:
        """Reap keepers; one that was killed left its tree to this process, to be killed as well."""
        ended, _ = tree.reap()
        for pid, code in ended.items():
            kept = self._keepers.pop(pid, None)
            if kept is not None and code:
                self._bereaved.append(kept)
            elif kept is not None:
                kept.close()
        if self._bereaved:
            strays = [pid for pid in tree.children(os.getpid()) if pid not in self._keepers]
            tree.send_signals(strays + tree.descendants(strays), signal.SIGKILL)
            while self._bereaved and not strays:
                kept = self._bereaved.pop()
                kept.tell({"bereaved": True})
                kept.close()


def _receive(link: socket.socket) -> tuple[bytes, list[int]]:
    """Receive a message and its file descriptors, none for a work to inherit: socket.recv_fds would ignore the flag."""
    message, ancillary, _, _ = link.recvmsg(16, socket.CMSG_SPACE(_MAX_FDS * _INT), socket.MSG_CMSG_CLOEXEC)
    fds = [fd for _, _, data in ancillary for fd in memoryview(data[: len(data) // _INT * _INT]).cast("i")]
    return message, fds


def main() -> None:
    """Become the guard of the worker at the other end of the socket named on the command line."""
    worker = socket.socket(fileno=int(sys.argv[1]))
    worker.set_inheritable(False)
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    tree.become_subreaper()
    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        raise OSError(errno.ENOSYS, "this kernel lists no children of a process (CONFIG_PROC_CHILDREN)")
    guard = GuardProcess(worker)
    gc.freeze()  # what is forked shares this memory
    worker.send(b"ready")
    guard.run()


if __name__ == "__main__":
    main()

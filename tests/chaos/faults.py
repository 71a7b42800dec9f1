"""Does faults to a site, and remembers which."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from temporalio.service import RPCError

from chaos import host_faults, task_faults
from chaos.plan import Fault, Kind
from chaos.site import Site
from chaos.target import Note

WAYS: Final[Mapping[Kind, Callable[[Site, Fault, Note], Awaitable[None]]]] = {
    Kind.HOST_KILLED: host_faults.kill_host,
    Kind.HOST_STOPPED: host_faults.stop_host,
    Kind.GUARD_KILLED: host_faults.kill_guard,
    Kind.HOST_WIPED_OUT: host_faults.wipe_out,
    Kind.CUT_REFUSING: host_faults.refuse,
    Kind.CUT_SILENT: host_faults.swallow,
    Kind.SCHEDULER_KILLED: host_faults.kill_scheduler,
    Kind.SERVER_KILLED: host_faults.kill_server,
    Kind.TASK_TERMINATED: task_faults.terminate,
    Kind.TASK_RESET: task_faults.reset,
    Kind.TASK_CANCELLED: task_faults.cancel,
}


@dataclass(frozen=True, kw_only=True)
class Injected:
    """A fault that was done."""

    kind: Kind
    at: float
    """Seconds of CLOCK_BOOTTIME."""
    devices: tuple[str, ...]
    """What it kept, or may have kept, from being used."""
    what: str

    def __str__(self) -> str:
        return f"{self.at:.3f} {self.kind}: {self.what}"


class Injector:
    """Does faults to a site, and keeps a list of those that hit something."""

    def __init__(self, site: Site) -> None:
        self.injected: list[Injected] = []
        self._site = site

    async def inject(self, fault: Fault) -> None:
        """Do it, and return when it is over."""
        at = time.clock_gettime(time.CLOCK_BOOTTIME)

        def note(what: str, devices: tuple[str, ...]) -> None:
            done = Injected(kind=fault.kind, at=at, devices=devices, what=what)
            self.injected.append(done)
            with (self._site.folder / "faults.log").open("a", encoding="utf-8") as log:
                log.write(f"{done}\n")

        with contextlib.suppress(RPCError):  # the server may be down, or the task have ended
            await WAYS[fault.kind](self._site, fault, note)

"""Faults of hosts and their connections, of schedulers and of the server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path

from chaos.plan import Fault
from chaos.site import HostSite, Site
from chaos.target import Note, target_of
from support.guarded import children


async def kill_host(site: Site, fault: Fault, note: Note) -> None:
    """Kill a worker with -9, and keep it down for a while."""
    host = target_of(fault, site.hosts)
    if host.worker.kill(fault.lasts):
        note(host.id, host.devices)


async def stop_host(site: Site, fault: Fault, note: Note) -> None:
    """Stop a worker, and let it go on later."""
    host = target_of(fault, site.hosts)
    if host.worker.send(signal.SIGSTOP):
        note(host.id, host.devices)
        try:
            await asyncio.sleep(fault.lasts)
        finally:
            host.worker.send(signal.SIGCONT)


async def kill_guard(site: Site, fault: Fault, note: Note) -> None:
    """Kill a worker's guard: the worker ends its works, and itself."""
    host = target_of(fault, site.hosts)
    guard = _guard_of(host)
    if guard is not None:
        os.kill(guard, signal.SIGKILL)
        note(host.id, host.devices)


async def wipe_out(site: Site, fault: Fault, note: Note) -> None:
    """Leave none of them the time to do anything about the others' end."""
    host = target_of(fault, site.hosts)
    guard, worker = _guard_of(host), host.worker.pid
    if guard is None or worker is None:
        return
    pids = [guard, *children(guard)]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        if number is signal.SIGSTOP:
            host.worker.send(number)
        else:
            host.worker.kill(fault.lasts)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    note(host.id, host.devices)


async def refuse(site: Site, fault: Fault, note: Note) -> None:
    """Break a host's connections to the server, and refuse new ones for a while."""
    host = target_of(fault, site.hosts)
    note(host.id, host.devices)
    try:
        await host.proxy.refuse()
        await asyncio.sleep(fault.lasts)
    finally:
        await host.proxy.heal()


async def swallow(site: Site, fault: Fault, note: Note) -> None:
    """Let nothing through between a host and the server for a while."""
    host = target_of(fault, site.hosts)
    note(host.id, host.devices)
    try:
        host.proxy.swallow()
        await asyncio.sleep(fault.lasts)
    finally:
        await host.proxy.heal()


def _guard_of(host: HostSite) -> int | None:
    """Return the guard of a host's worker, if both are there."""
    if host.worker.pid is None:
        return None
    with contextlib.suppress(OSError):
        for child in children(host.worker.pid):
            if b"guard_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                return child
    return None


async def kill_scheduler(site: Site, fault: Fault, note: Note) -> None:
    """Kill a scheduler with -9, and keep it down for a while."""
    scheduler = target_of(fault, site.schedulers)
    if scheduler.kill(fault.lasts):
        note(scheduler.name, site.devices)


async def kill_server(site: Site, fault: Fault, note: Note) -> None:
    """Kill Temporal's server with -9, and start it on the same file and port a while later."""
    note("server", site.devices)
    # Whoever is cancelled meanwhile finds the server up again: without it nothing could be healed.
    await asyncio.shield(site.server.crash(fault.lasts))

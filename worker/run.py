"""`toolcrib worker`: one process in the role of a scheduler, a host, or both."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Literal

from toolcrib.activities.guard import become_subreaper
from toolcrib.worker.connection import connect_when_up
from toolcrib.worker.host_file import load_host_file
from toolcrib.worker.host_role import host_role
from toolcrib.worker.plugins import load_plugins
from toolcrib.worker.scheduler_role import scheduler_role
from toolcrib.worker.settings import load_settings, prepared_home
from toolcrib.worker.stopping import STOP_WITHIN, ExitDeadline, stop_signals, unless_stopped, until_stopped

Role = Literal["scheduler", "host", "all"]


async def run_worker(
    config: Path | None,
    role: Role,
    plugins: Sequence[str],
    *,
    address: str | None = None,
    namespace: str | None = None,
) -> None:
    """Work until SIGINT or SIGTERM; a host then lets its work finish for its `drain_timeout`.

    Raises:
        InvalidRequest: the host file, a plugin, a runner or a driver is wrong.
        UnknownStrategy: a pool is configured with a strategy that this scheduler does not have.
        NoConnection: no waiting will make the connection work.
        NotSetUp: the namespace or search attributes are missing.
        HostRunsAlready: another process serves the host.
        HostSuperseded: another worker serves the host now.
        GuardLost: the process that spawns the work is gone; the work was ended.
    """
    brought = load_plugins(plugins)
    host = load_host_file(config) if config is not None and role != "scheduler" else None
    settings = load_settings()
    home = prepared_home(settings) if host is not None else settings.home
    with stop_signals() as stop:
        client = await unless_stopped(stop, connect_when_up(address, namespace=namespace))
        if client is None:
            return
        async with AsyncExitStack() as roles:
            deadline = roles.enter_context(ExitDeadline())
            agent = None
            if role != "host":
                await roles.enter_async_context(scheduler_role(client))
            if host is not None:
                become_subreaper()
                role_of_host = host_role(
                    client, host, home, drain=host.drain_timeout, locks=settings.locks, plugins=brought
                )
                agent = await roles.enter_async_context(role_of_host)
            await until_stopped(stop, *(agent.failures if agent else ()))
            deadline.start(STOP_WITHIN + (host.drain_timeout if host is not None else 0.0))
            if agent is not None and agent.fault is not None:
                raise agent.fault

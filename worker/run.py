"""`toolcrib worker`: one process in the role of a scheduler, a host, or both."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Literal

from toolcrib.activities.guard import GuardLost
from toolcrib.worker.connection import connect_when_up
from toolcrib.worker.host_file import load_host_file
from toolcrib.worker.host_role import host_role
from toolcrib.worker.plugins import load_plugins
from toolcrib.worker.scheduler_role import scheduler_role
from toolcrib.worker.settings import load_settings
from toolcrib.worker.stopping import stop_signals, until_stopped

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
        GuardLost: the process that spawns the work is gone; the work was ended.
    """
    load_plugins(plugins)
    host = load_host_file(config) if config is not None and role != "scheduler" else None
    home = load_settings().home
    with stop_signals() as stop:
        client = await connect_when_up(address, namespace=namespace)
        async with AsyncExitStack() as roles:
            failures = []
            if role != "host":
                await roles.enter_async_context(scheduler_role(client))
            if host is not None:
                agent = await roles.enter_async_context(host_role(client, host, home, drain=host.drain_timeout))
                failures.append(agent.guard.lost)
            await until_stopped(stop, *failures)
            if failures and failures[0].is_set():
                raise GuardLost("the guard process died, and this host's work with it", hint="Start the worker again.")

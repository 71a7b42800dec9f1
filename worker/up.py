"""`toolcrib up`: server, scheduler and a host with slots, all on this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import structlog
from temporalio.client import Client, WorkflowHandle

from toolcrib.activities.brought import Brought
from toolcrib.activities.guard import become_subreaper
from toolcrib.activities.host_keys import HostKeyPair, load_or_create_key
from toolcrib.activities.machine import machine_name
from toolcrib.activities.pool_link import PoolLinks
from toolcrib.activities.pools import ensure_pool
from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.constraints import checked_tags
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.errors import InvalidRequest, NoConnection
from toolcrib.scheduling.messages import HostKey
from toolcrib.scheduling.names import DEFAULT_POOL, checked_name, pool_workflow_id
from toolcrib.scheduling.strategies import STRATEGIES
from toolcrib.scheduling.validation import validated
from toolcrib.scheduling.views import PoolView
from toolcrib.worker.connection import connect_to
from toolcrib.worker.embedded import EmbeddedServer
from toolcrib.worker.host_file import HostFile
from toolcrib.worker.host_role import host_role
from toolcrib.worker.plugins import load_plugins
from toolcrib.worker.runner_names import RunnerNames
from toolcrib.worker.scheduler_role import scheduler_role
from toolcrib.worker.settings import load_settings, prepared_home
from toolcrib.worker.stopping import STOP_WITHIN, ExitDeadline, stop_signals, unless_stopped, until_stopped
from toolcrib.worker.target import plain_target
from toolcrib.workflows.contract import POOL_CONFIGURE, POOL_VIEW

DATABASE: Final = "temporal.db"
READY_FILE: Final = "toolcrib.json"

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class UpOptions:
    """What `toolcrib up` was asked for."""

    ip: str = "127.0.0.1"
    port: int = 7233
    ui_port: int = 8233
    data: Path | None = None
    """None: everything is kept in memory."""
    host_id: str | None = None
    devices: int = 4
    """0: no host of its own."""
    tags: tuple[str, ...] = ()
    pool: str = DEFAULT_POOL
    plugins: tuple[str, ...] = ()
    """Modules to import, such as those of strategies."""
    pool_options: dict[str, Any] = field(default_factory=dict)
    """Fields of `PoolConfig` that were given."""


@dataclass(frozen=True, kw_only=True)
class Ready:
    """Where everything is, once it works."""

    address: str
    ui: str
    pool: str
    host: str | None

    def __str__(self) -> str:
        return f"ready address={self.address} ui={self.ui} pool={self.pool} host={self.host or '-'}"


async def run_up(options: UpOptions, ready: Callable[[Ready], None]) -> None:
    """Run until SIGINT or SIGTERM, and tell `ready` where everything is once it works.

    Raises:
        InvalidRequest: an option is wrong, or a port is taken.
        UnknownStrategy: there is no such strategy.
        NotSetUp: the embedded server is not installed.
        HostRunsAlready, HostSuperseded: another process serves the host.
        GuardLost: the process that spawns the work is gone; the work was ended.
    """
    brought = load_plugins(options.plugins)
    host = _host(options, brought)
    STRATEGIES.get(validated(PoolConfig, options.pool_options).strategy)
    checked_name(options.pool, "pool")
    with stop_signals() as stop:
        async with AsyncExitStack() as parts:
            deadline = parts.enter_context(ExitDeadline())
            server = await parts.enter_async_context(_server(options))
            client = await connect_to(plain_target(server.address))
            await parts.enter_async_context(scheduler_role(client))
            await _prepare_pool(client, options)
            server_gone = parts.enter_context(_noticed_end(server))
            failures = [server_gone]
            if host is not None:
                become_subreaper()
                home = _home(options)
                await _enroll(client, options.pool, load_or_create_key(home, host.id))
                role = host_role(client, host, home, drain=0.0, locks=load_settings().locks, plugins=brought)
                agent = await parts.enter_async_context(role)
                failures += agent.failures
                await unless_stopped(stop, agent.registered.wait())
            found = Ready(address=server.address, ui=server.ui_url, pool=options.pool, host=host.id if host else None)
            if options.data is not None:
                (options.data / READY_FILE).write_text(json.dumps(asdict(found)) + "\n", encoding="utf-8")
            ready(found)
            await until_stopped(stop, *failures)
            deadline.start(STOP_WITHIN)
            if server_gone.is_set():
                _log.error("the Temporal server has ended by itself; stopping")
                raise NoConnection("the Temporal server has ended by itself", hint="Start again: toolcrib up")
            if host is not None and agent.fault is not None:
                raise agent.fault


async def _enroll(client: Client, pool: str, key: HostKeyPair) -> None:
    """Have this machine's host enrolled; whoever starts the server is its operator, and may replace an older key."""
    link = PoolLinks(client).to(pool)
    known = await link.standing(key.host_id)
    if known.public_key not in (None, key.public):
        _log.warning("this host has a new key; the one that it was enrolled with is revoked", host=key.host_id)
        await link.enroll(HostKey(host_id=key.host_id, public_key=None))
    await link.enroll(HostKey(host_id=key.host_id, public_key=key.public))


@contextmanager
def _noticed_end(server: EmbeddedServer) -> Iterator[asyncio.Event]:
    """Give an event that is set when the server ends."""
    gone = asyncio.Event()

    async def notice() -> None:
        await server.wait()
        gone.set()

    noticing = asyncio.create_task(notice())
    try:
        yield gone
    finally:
        noticing.cancel()


def _server(options: UpOptions) -> EmbeddedServer:
    database = None
    if options.data is not None:
        try:
            options.data.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidRequest(
                f"data: {options.data} cannot be a folder: {error.strerror}",
                hint="Name one that can be created and written to: toolcrib up --data DIR",
            ) from None
        database = options.data / DATABASE
    return EmbeddedServer(ip=options.ip, port=options.port, ui_port=options.ui_port, database=database)


def _home(options: UpOptions) -> Path:
    settings = load_settings()
    if options.data is not None:
        settings = settings.model_copy(update={"home": options.data / "home"})
    return prepared_home(settings)


def _host(options: UpOptions, brought: Brought) -> HostFile | None:
    if options.devices == 0:
        return None
    tags = checked_tags(options.tags, "tag")
    slots = [
        DeviceSpec(id=f"slot-{number}", driver="local", driver_type="local", tags=tags)
        for number in range(1, options.devices + 1)
    ]
    return HostFile(
        id=checked_name(options.host_id or machine_name(), "host_id"),
        devices=tuple(slots),
        pool=options.pool,
        runners=RunnerNames(goal="shell", workflow="temporal" if brought.workflows else None),
    )


async def _prepare_pool(client: Client, options: UpOptions) -> None:
    """Create the pool, or change one that is stored as far as options were given."""
    await ensure_pool(client, options.pool, validated(PoolConfig, options.pool_options))
    handle: WorkflowHandle[Any, Any] = client.get_workflow_handle(pool_workflow_id(options.pool))
    if options.pool_options:
        await (
            PoolLinks(client).to(options.pool).ask(lambda: handle.execute_update(POOL_CONFIGURE, options.pool_options))
        )
    view = await handle.query(POOL_VIEW, result_type=PoolView)
    cap = view.max_concurrent
    if cap is not None and cap < options.devices:
        _log.warning(
            f"at most {cap} of the {options.devices} slots are used at once (max_concurrent)",
            change=f"toolcrib pool configure {options.pool} --max-concurrent none",
        )

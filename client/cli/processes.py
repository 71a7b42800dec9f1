"""`toolcrib up`, `toolcrib worker` and `toolcrib demo`: the commands that are processes of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from toolcrib.client.cli.command import command, new_app
from toolcrib.client.cli.options import (
    ClaimTimeout,
    LeaseTtl,
    MaxAttempts,
    MaxConcurrent,
    MaxQueueDepth,
    Strategy,
    pool_options,
)
from toolcrib.client.cli.output import say
from toolcrib.client.cli.session import Session
from toolcrib.scheduling.names import DEFAULT_POOL

MAX_PORT = 65_535

app = new_app()

Ip = Annotated[str, typer.Option(metavar="ADDRESS", help="Where the server listens.")]
Port = Annotated[int, typer.Option(min=0, max=MAX_PORT, metavar="N", help="Of the server; 0: any free one.")]
UiPort = Annotated[int, typer.Option(min=0, max=MAX_PORT, metavar="N", help="Of the Web UI; 0: any free one.")]
Data = Annotated[Path | None, typer.Option(metavar="DIR", help="Where everything is kept; else in memory only.")]
HostId = Annotated[str | None, typer.Option(metavar="ID", help="Id of this machine as a host.")]
Devices = Annotated[int, typer.Option(min=0, metavar="N", help="Slots of this machine; 0: no host of its own.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="T", help="A tag of each slot; repeatable.")]
Pool = Annotated[str, typer.Option(metavar="NAME", help="The pool of this machine's slots.")]
Config = Annotated[Path | None, typer.Option(metavar="FILE", help="The host file; a scheduler needs none.")]
Role = Annotated[Literal["scheduler", "host", "all"], typer.Option(help="What this process is.")]
Plugins = Annotated[list[str] | None, typer.Option("--plugin", metavar="MODULE", help="To be imported; repeatable.")]


@command(app, "up", examples=["toolcrib up", "toolcrib up --data ~/crib --devices 4 --max-concurrent none"])
async def up(
    session: Session,
    ip: Ip = "127.0.0.1",
    port: Port = 7233,
    ui_port: UiPort = 8233,
    data: Data = None,
    host_id: HostId = None,
    devices: Devices = 4,
    tags: Tags = None,
    pool: Pool = DEFAULT_POOL,
    strategy: Strategy = None,
    max_concurrent: MaxConcurrent = None,
    max_queue_depth: MaxQueueDepth = None,
    claim_timeout: ClaimTimeout = None,
    lease_ttl: LeaseTtl = None,
    max_attempts: MaxAttempts = None,
    plugins: Plugins = None,
) -> None:
    """Run all of toolcrib on this machine.

    That is Temporal's server, a scheduler, and a host with slots. Ctrl-C ends it.
    When it is ready it prints one line: ready address=HOST:PORT ui=URL pool=NAME host=ID.
    """
    settings = pool_options(
        strategy=strategy,
        max_concurrent=max_concurrent,
        max_queue_depth=max_queue_depth,
        claim_timeout=claim_timeout,
        lease_ttl=lease_ttl,
        max_attempts=max_attempts,
    )
    _configure_logs()
    from toolcrib.worker.up import UpOptions, run_up

    options = UpOptions(
        ip=ip,
        port=port,
        ui_port=ui_port,
        data=data,
        host_id=host_id,
        devices=devices,
        tags=tuple(tags or ()),
        pool=pool,
        plugins=tuple(plugins or ()),
        pool_options=settings,
    )
    await run_up(options, lambda ready: say(str(ready)))


@command(app, "worker", examples=["toolcrib worker --config host.yaml --role host", "toolcrib worker --role scheduler"])
async def worker(session: Session, config: Config = None, role: Role = "all", plugins: Plugins = None) -> None:
    """Run a host's worker, a scheduler, or both.

    Until Ctrl-C or SIGTERM; a host lets its work finish first.
    """
    if config is None and role != "scheduler":
        raise typer.BadParameter(f"role {role} needs one: --config FILE", param_hint="--config")
    _configure_logs()
    from toolcrib.worker.run import run_worker

    await run_worker(config, role, list(plugins or ()), address=session.address, namespace=session.namespace)


@command(app, "demo", examples=["toolcrib demo"])
async def demo(session: Session) -> None:
    """Show in seconds what toolcrib does.

    On a server of its own: how tasks share devices, and survive a crash.
    """
    from toolcrib.client.demo import run_demo

    if not await run_demo():
        raise typer.Exit(1)


def _configure_logs() -> None:
    from toolcrib.worker.logs import configure_logs
    from toolcrib.worker.settings import load_settings

    configure_logs(load_settings())

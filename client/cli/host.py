"""`toolcrib host list|drain|resume`."""

from __future__ import annotations

from typing import Annotated

import typer

from toolcrib.client.cli.command import command, new_app
from toolcrib.client.cli.options import Pool
from toolcrib.client.cli.output import note, say_view, say_views
from toolcrib.client.cli.pool_view import say_hosts
from toolcrib.client.cli.session import Session

app = new_app("Look at hosts, and keep their devices from tasks.")

HostId = Annotated[str, typer.Argument(metavar="ID", help="The host.")]


@command(app, "list", examples=["toolcrib host list", "toolcrib host list --pool phones -o json"])
async def list_hosts(session: Session, pool: Pool = None) -> None:
    """List a pool's hosts."""
    async with session.client(pool) as crib:
        views = await crib.pool().hosts()
    if session.as_json:
        say_views(views)
    else:
        say_hosts(views)


@command(app, "drain", examples=["toolcrib host drain lab-1"])
async def drain(session: Session, host_id: HostId, pool: Pool = None) -> None:
    """Take a host with all its devices out of service: what runs there may finish, nothing new begins."""
    async with session.client(pool) as crib:
        view = await crib.pool().drain_host(host_id)
    if session.as_json:
        say_view(view)
    else:
        note(f"host {view.id} is out of service" + ("; some work runs on" if view.state == "draining" else ""))


@command(app, "resume", examples=["toolcrib host resume lab-1"])
async def resume(session: Session, host_id: HostId, pool: Pool = None) -> None:
    """Let tasks have a host's devices again, but for those that are out of service themselves."""
    async with session.client(pool) as crib:
        view = await crib.pool().resume_host(host_id)
    if session.as_json:
        say_view(view)
    else:
        note(f"host {view.id} is in service")

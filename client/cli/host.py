"""`toolcrib host list|drain|resume|keygen|enroll|revoke`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.client.cli.command import command, new_app
from toolcrib.client.cli.options import Pool
from toolcrib.client.cli.output import note, say, say_json, say_view, say_views
from toolcrib.client.cli.pool_view import say_hosts
from toolcrib.client.cli.session import Session
from toolcrib.scheduling.errors import InvalidRequest

if TYPE_CHECKING:
    from toolcrib.scheduling.views import HostView

app = new_app("Look at hosts, say which belong to a pool, and keep their devices from tasks.")

HostId = Annotated[str, typer.Argument(metavar="ID", help="The host.")]
PublicKey = Annotated[
    str | None, typer.Option(metavar="KEY", help="As printed by keygen; else that of the key on this machine.")
]


@command(app, "list", examples=["toolcrib host list", "toolcrib host list --pool phones -o json"])
async def list_hosts(session: Session, pool: Pool = None) -> None:
    """List a pool's hosts."""
    async with session.answering(pool) as crib:
        views = await crib.pool().hosts()
    if session.as_json:
        say_views(views)
    else:
        say_hosts(views)


@command(app, "drain", examples=["toolcrib host drain lab-1"])
async def drain(session: Session, host_id: HostId, pool: Pool = None) -> None:
    """Take a host with all its devices out of service: what runs there may finish, nothing new begins."""
    async with session.answering(pool) as crib:
        view = await crib.pool().drain_host(host_id)
    rest = "; some work runs on" if view.state == "draining" else ""
    _say_order(session, view, f"host {view.id} is out of service{rest}")


@command(app, "resume", examples=["toolcrib host resume lab-1"])
async def resume(session: Session, host_id: HostId, pool: Pool = None) -> None:
    """Let tasks have a host's devices again, but for those that are out of service themselves."""
    async with session.answering(pool) as crib:
        view = await crib.pool().resume_host(host_id)
    _say_order(session, view, f"host {view.id} is in service")


@command(app, "keygen", examples=["toolcrib host keygen lab-1"])
async def keygen(session: Session, host_id: HostId) -> None:
    """Create the key by which a host proves who it is, and print the public half.

    On the host itself: the private half stays there, in TOOLCRIB_HOME/keys. A worker without a key creates one, too.
    """
    from toolcrib.activities.host_keys import create_key
    from toolcrib.worker.settings import load_settings, prepared_home

    public_key = create_key(prepared_home(load_settings()), host_id).public
    if session.as_json:
        say_json({"id": host_id, "public_key": public_key})
    else:
        say(public_key)
        note(f"next, where you operate the pool: toolcrib host enroll {host_id} --public-key {public_key}")


@command(app, "enroll", examples=["toolcrib host enroll lab-1", "toolcrib host enroll lab-1 --public-key KEY"])
async def enroll(session: Session, host_id: HostId, public_key: PublicKey = None, pool: Pool = None) -> None:
    """Let a host serve a pool's tasks: only who has its private key gets their work and can end them."""
    key = public_key if public_key is not None else _own_key(host_id)
    async with session.answering(pool) as crib:
        view = await crib.pool().enroll_host(host_id, key)
    _say_order(session, view, f"host {view.id} is enrolled in pool {crib.pool().name}")


@command(app, "revoke", examples=["toolcrib host revoke lab-1"])
async def revoke(session: Session, host_id: HostId, pool: Pool = None) -> None:
    """Give a host no more leases: its key is forgotten. What runs there may finish; cancel it to end it."""
    async with session.answering(pool) as crib:
        view = await crib.pool().revoke_host(host_id)
    _say_order(session, view, f"host {view.id} is no longer enrolled")


def _own_key(host_id: str) -> str:
    from toolcrib.activities.host_keys import key_file, load_key
    from toolcrib.worker.settings import load_settings

    home = load_settings().home
    if not key_file(home, host_id).exists():
        raise InvalidRequest(
            f"the key of host {host_id} is not on this machine, in {key_file(home, host_id)}",
            hint=f"Say it: toolcrib host enroll {host_id} --public-key KEY; its worker logs the whole command",
        )
    return load_key(home, host_id).public


def _say_order(session: Session, view: HostView, done: str) -> None:
    """Write how a host is after an order, or just that it was carried out."""
    if session.as_json:
        say_view(view)
    else:
        note(done)

"""`toolcrib device list|show|drain|resume|quarantine`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.client.cli.command import command, new_app
from toolcrib.client.cli.format import since
from toolcrib.client.cli.options import Pool
from toolcrib.client.cli.output import note, say_block, say_view, say_views
from toolcrib.client.cli.pool_view import say_devices
from toolcrib.client.cli.session import Session

if TYPE_CHECKING:
    from toolcrib.client import DeviceView

app = new_app("Look at devices, and keep them from tasks.")

Key = Annotated[str, typer.Argument(metavar="KEY", help="The device, as HOST/DEVICE.")]


@command(app, "list", examples=["toolcrib device list", "toolcrib device list -o json | jq '.[].state'"])
async def list_devices(session: Session, pool: Pool = None) -> None:
    """List a pool's devices."""
    async with session.answering(pool) as crib:
        views = await crib.pool().devices()
    if session.as_json:
        say_views(views)
    else:
        say_devices(views)


@command(app, "show", examples=["toolcrib device show lab-1/slot-1"])
async def show(session: Session, key: Key, pool: Pool = None) -> None:
    """Show a device: what it is, its state and why, and who holds it."""
    async with session.answering(pool) as crib:
        view = await crib.pool().device(key)
    if session.as_json:
        say_view(view)
    else:
        _say_device(view)


@command(app, "drain", examples=["toolcrib device drain lab-1/slot-1"])
async def drain(session: Session, key: Key, pool: Pool = None) -> None:
    """Take a device out of service: the task that holds it may finish, no other gets it."""
    async with session.answering(pool) as crib:
        view = await crib.pool().drain_device(key)
    _confirm(session, view, f"is out of service{_until_done(view)}")


@command(app, "resume", examples=["toolcrib device resume lab-1/slot-1"])
async def resume(session: Session, key: Key, pool: Pool = None) -> None:
    """Let tasks have a device again that is out of service, rests or is quarantined."""
    async with session.answering(pool) as crib:
        view = await crib.pool().resume_device(key)
    _confirm(session, view, "is in service" if view.in_service else "stays out of service with its host")


@command(app, "quarantine", examples=["toolcrib device quarantine lab-1/slot-1 --reason 'its screen is broken'"])
async def quarantine(
    session: Session,
    key: Key,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, for those who look at it.")],
    pool: Pool = None,
) -> None:
    """Keep a device from tasks until it is resumed, for a reason; the task that holds it may finish."""
    async with session.answering(pool) as crib:
        view = await crib.pool().quarantine_device(key, reason)
    _confirm(session, view, f"is quarantined{_until_done(view)}")


def _confirm(session: Session, view: DeviceView, done: str) -> None:
    if session.as_json:
        say_view(view)
    else:
        note(f"device {view.key} {done}")


def _until_done(view: DeviceView) -> str:
    return f"; {view.task_id} may finish on it" if view.task_id else ""


def _say_device(view: DeviceView) -> None:
    say_block(
        (
            ("device", view.key),
            ("type", view.driver_type),
            ("tags", " ".join(view.tags) or None),
            *((name, value) for name, value in view.properties.items()),
            ("state", f"{view.state} for {since(view.since)}"),
            ("in service", "yes" if view.in_service else "no"),
            ("reason", view.reason),
            ("task", view.task_id),
            ("lease", view.lease_id),
        )
    )

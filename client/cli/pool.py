"""`toolcrib pool create|configure|show|list|assign`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

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
from toolcrib.client.cli.output import note, say, say_json, say_view, say_views
from toolcrib.client.cli.pool_view import say_pool, say_pools
from toolcrib.client.cli.session import Session

if TYPE_CHECKING:
    from toolcrib.client import PoolHandle

app = new_app("Create, configure and look at pools of devices.")

PoolName = Annotated[str, typer.Argument(metavar="NAME", help="The pool.")]
AnyPool = Annotated[str | None, typer.Argument(metavar="NAME", help="The pool; else default.", show_default=False)]


@command(app, "create", examples=["toolcrib pool create phones --max-concurrent none --lease-ttl 30s"])
async def create(
    session: Session,
    name: PoolName,
    strategy: Strategy = None,
    max_concurrent: MaxConcurrent = None,
    max_queue_depth: MaxQueueDepth = None,
    claim_timeout: ClaimTimeout = None,
    lease_ttl: LeaseTtl = None,
    max_attempts: MaxAttempts = None,
) -> None:
    """Create a pool; what is not given has its default."""
    options = pool_options(
        strategy=strategy,
        max_concurrent=max_concurrent,
        max_queue_depth=max_queue_depth,
        claim_timeout=claim_timeout,
        lease_ttl=lease_ttl,
        max_attempts=max_attempts,
    )
    async with session.answering(name) as crib:
        handle = crib.pool(name)
        await handle.create(**options)
        await _confirm(session, handle, "created")


@command(app, "configure", examples=["toolcrib pool configure default --max-concurrent 20 --strategy priority_fifo"])
async def configure(
    session: Session,
    name: PoolName,
    strategy: Strategy = None,
    max_concurrent: MaxConcurrent = None,
    max_queue_depth: MaxQueueDepth = None,
    claim_timeout: ClaimTimeout = None,
    lease_ttl: LeaseTtl = None,
    max_attempts: MaxAttempts = None,
) -> None:
    """Change settings of a pool; what is not given stays."""
    options = pool_options(
        strategy=strategy,
        max_concurrent=max_concurrent,
        max_queue_depth=max_queue_depth,
        claim_timeout=claim_timeout,
        lease_ttl=lease_ttl,
        max_attempts=max_attempts,
    )
    if not options:
        raise typer.BadParameter("give at least one setting to change", param_hint="configure")
    async with session.answering(name) as crib:
        handle = crib.pool(name)
        await handle.configure(**options)
        await _confirm(session, handle, "configured")


@command(app, "show", examples=["toolcrib pool show", "toolcrib pool show phones -o json | jq '.devices[].state'"])
async def show(session: Session, name: AnyPool = None) -> None:
    """Show a pool: its settings, devices, hosts and queue."""
    async with session.answering(name) as crib:
        view = await crib.pool(name).show()
    if session.as_json:
        say_view(view)
    else:
        say_pool(view)


@command(app, "list", examples=["toolcrib pool list", "toolcrib pool list -o json | jq '.[].name'"])
async def list_pools(session: Session) -> None:
    """List the pools.

    Those that were ended, by terminating their workflow, are told beside it.
    """
    async with session.answering() as crib:
        views, ended = await crib.pools(), await crib.ended_pools()
    if session.as_json:
        say_views(views)
        return
    if views:
        say_pools(views)
    elif not ended:
        note("no pools; create one: toolcrib pool create NAME")
    for name in ended:
        note(f"pool {name!r} was ended; create it again: toolcrib pool create {name}")


@command(app, "assign", examples=["toolcrib pool assign", "toolcrib pool assign phones"])
async def assign(session: Session, name: AnyPool = None) -> None:
    """Let a pool decide now, and print how many tasks got a device.

    That it is none is no error.
    """
    async with session.answering(name) as crib:
        granted = await crib.pool(name).assign()
    if session.as_json:
        say_json({"granted": granted})
    else:
        say(str(granted))


async def _confirm(session: Session, handle: PoolHandle, done: str) -> None:
    if session.as_json:
        say_view(await handle.show())
    else:
        note(f"pool {handle.name} {done}")

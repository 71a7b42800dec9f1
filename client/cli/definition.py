"""`toolcrib definition`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.client.cli.command import command, new_app
from toolcrib.client.cli.options import Pool
from toolcrib.client.cli.output import note, say, say_block, say_json, say_table, say_views
from toolcrib.client.cli.session import Session
from toolcrib.scheduling.references import FUNCTIONS

if TYPE_CHECKING:
    from toolcrib.client import DefinitionView

app = new_app("Check workflow definitions, and look at those that hosts have.")


@command(
    app, "validate", examples=["toolcrib definition validate smoke.yaml", "toolcrib definition validate a.yaml -o json"]
)
async def validate(
    session: Session, file: Annotated[Path, typer.Argument(metavar="FILE", help="A definition.")]
) -> None:
    """Check a workflow definition, and print how it was understood.

    What is wrong is said with line and column. Nothing is run, and no server is needed.
    """
    from toolcrib.activities.definition_files import load_definition
    from toolcrib.client.cli.definition_text import described

    definition = load_definition(file)
    if session.as_json:
        say_json(definition.model_dump(mode="json"))
    else:
        for line in described(definition):
            say(line)


@command(app, "list", examples=["toolcrib definition list", "toolcrib definition list --pool phones -o json"])
async def list_definitions(session: Session, pool: Pool = None) -> None:
    """List the workflows that a pool's hosts can run, and which hosts can."""
    async with session.answering(pool) as crib:
        handle = crib.pool()
        views, hosts = await handle.definitions(), await handle.hosts()
    if session.as_json:
        say_views(views)
        return
    say_table(("WORKFLOW", "VERSION", "HOSTS"), map(_row, views))
    if silent := [host.id for host in hosts if host.workflows is None]:
        note(f"note: {', '.join(silent)}: may run others as well, and does not say which")
    if calling := [host.id for host in hosts if FUNCTIONS in (host.workflows or ())]:
        note(f"note: {', '.join(calling)}: functions as well, by package.module:function")


@command(app, "show", examples=["toolcrib definition show smoke", "toolcrib definition show smoke@2 -o json"])
async def show(
    session: Session,
    reference: Annotated[str, typer.Argument(metavar="NAME[@VERSION]", help="A workflow.")],
    pool: Pool = None,
) -> None:
    """Show which versions of a workflow there are, and which hosts of a pool can run them."""
    from toolcrib.scheduling.definition_views import definitions_like

    async with session.answering(pool) as crib:
        handle = crib.pool()
        views = definitions_like(await handle.definitions(), reference, handle.name)
    if session.as_json:
        say_views(views)
        return
    for number, view in enumerate(views):
        if number:
            say("")
        name, version, hosts = _row(view)
        say_block((("workflow", name), ("version", version), ("hosts", hosts)))


def _row(view: DefinitionView) -> tuple[str, str, str]:
    return view.name, view.version or "-", " ".join(view.hosts)

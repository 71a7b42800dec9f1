"""`toolcrib definition`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolcrib.client.cli.command import command, new_app
from toolcrib.client.cli.output import say, say_json
from toolcrib.client.cli.session import Session

app = new_app("Check workflow definitions.")


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

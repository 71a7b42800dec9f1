"""`toolcrib strategies`."""

from __future__ import annotations

from toolcrib.client.cli.command import command, new_app
from toolcrib.client.cli.output import say, say_json
from toolcrib.client.cli.session import Session

app = new_app()


@command(app, "strategies", examples=["toolcrib strategies", "toolcrib strategies -o json"])
async def strategies(session: Session) -> None:
    """List the assignment strategies.

    A pool decides by one of them who gets what.
    """
    async with session.answering() as crib:
        names = await crib.strategies()
    if session.as_json:
        say_json(names)
    else:
        for name in names:
            say(name)

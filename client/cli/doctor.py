"""`toolcrib doctor`."""

from __future__ import annotations

import typer

from toolcrib.client.cli.checks import examine
from toolcrib.client.cli.command import command, new_app
from toolcrib.client.cli.findings import Check
from toolcrib.client.cli.output import say, say_json
from toolcrib.client.cli.session import Session
from toolcrib.scheduling.errors import NotSetUp

app = new_app()


@command(app, "doctor", examples=["toolcrib doctor", "toolcrib doctor --address HOST:PORT -o json"])
async def doctor(session: Session) -> None:
    """Check whether toolcrib can work here.

    Looks at connection, set-up, schedulers and pools, and says what to do about each problem. Exit code 3 if
    tasks cannot be submitted; what is only noted does not count.
    """
    checks = await examine(session)
    usable = all(check.verdict != "problem" for check in checks)
    if session.as_json:
        say_json({"usable": usable, "checks": [check.as_json() for check in checks]})
    else:
        for check in checks:
            _say_check(check)
    if not usable:
        raise typer.Exit(NotSetUp.exit_code)


def _say_check(check: Check) -> None:
    say(f"{check.verdict:<7}  {check.name}: {check.text}")
    if check.hint:
        say(f"{'':<7}  {check.hint}")

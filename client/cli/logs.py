"""`toolcrib logs` and `toolcrib artifacts`."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.client.cli.command import command, new_app
from toolcrib.client.cli.output import note, one_line, say_bytes, say_json, say_table
from toolcrib.client.cli.report import unwritable
from toolcrib.client.cli.session import Session
from toolcrib.client.cli.tasks import TaskId

if TYPE_CHECKING:
    from toolcrib.client import TaskHandle
    from toolcrib.scheduling.views import AttemptView

app = new_app()

Number = Annotated[int | None, typer.Option("--attempt", min=1, metavar="N", help="The attempt; else the last one.")]


@command(app, "logs", examples=["toolcrib logs ID", "toolcrib logs ID --follow", "toolcrib logs ID --attempt 1 > log"])
async def logs(
    session: Session,
    task_id: TaskId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the task has ended.")] = False,
    attempt: Number = None,
) -> None:
    """Show what an attempt of a task has printed.

    It is read from the attempt's host, which has to be up. With --follow and without a number, also the attempts that
    follow are shown.
    """
    said = _Said()
    async with session.client() as crib:
        pieces = crib.task(task_id).logs(attempt, follow=follow, on_attempt=said.begins, on_silence=said.is_silent)
        async with aclosing(pieces):
            async for data in pieces:
                if session.as_json:
                    said.as_json(data)
                else:
                    say_bytes(data)
        said.as_json(b"", final=True)


@command(
    app,
    "artifacts",
    examples=["toolcrib artifacts ID", "toolcrib artifacts ID --get report/index.html --to index.html"],
)
async def artifacts(
    session: Session,
    task_id: TaskId,
    attempt: Number = None,
    get: Annotated[str | None, typer.Option(metavar="PATH", help="Print this one.")] = None,
    to: Annotated[Path | None, typer.Option(metavar="FILE", help="With --get: where to write it.")] = None,
) -> None:
    """List the files that an attempt of a task has left in TOOLCRIB_ARTIFACTS, or fetch one of them.

    They are read from the attempt's host, which has to be up.
    """
    if to is not None and get is None:
        raise typer.BadParameter("say what to get: --get PATH", param_hint="--to")
    async with session.client() as crib:
        task = crib.task(task_id)
        if get is not None:
            await _fetch(task.artifact(get, attempt), to)
        else:
            await _list(session, task, attempt)


async def _list(session: Session, task: TaskHandle, attempt: int | None) -> None:
    found = await task.artifacts(attempt)
    if session.as_json:
        say_json([artifact.model_dump() for artifact in found])
    elif found:
        say_table(("BYTES", "PATH"), ((str(artifact.bytes), artifact.path) for artifact in found))
    else:
        note("no artifacts")


async def _fetch(pieces: AsyncIterator[bytes], to: Path | None) -> None:
    if to is None:
        async for data in pieces:
            say_bytes(data)
        return
    part = to.with_name(f"{to.name}.part")
    try:
        with part.open("wb") as file:
            async for data in pieces:
                file.write(data)
        part.replace(to)
    except OSError as error:
        raise unwritable(error) from None
    finally:
        part.unlink(missing_ok=True)


class _Said:
    """Knows whose log it is, and tells on standard error."""

    def __init__(self) -> None:
        self.number = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def as_json(self, data: bytes, *, final: bool = False) -> None:
        text = self._decoder.decode(data, final)
        if text:
            say_json({"attempt": self.number, "text": text}, indent=None)

    def begins(self, attempt: AttemptView) -> None:
        self.as_json(b"", final=True)
        if self.number or attempt.number > 1:
            note(one_line(f"attempt {attempt.number} on {attempt.host_id}/{attempt.device_id}"))
        self.number = attempt.number

    def is_silent(self, host_id: str) -> None:
        note(f"host {host_id} does not answer")

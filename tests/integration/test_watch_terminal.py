"""`toolcrib watch` as people and programs see it: bars on a terminal, lines in a pipe, JSON."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from temporalio.client import Client

from support.lab import PATIENCE, Lab, eventually, slot, until, until_status
from support.processes import PROGRAM, command
from support.runners import CONTROLLED, controlled
from toolcrib.activities.context import RunFailed

COLUMNS = 160


class Terminal:
    """A terminal with a command in it, and all that was drawn on it up to now, without colours and cursor moves."""

    def __init__(self) -> None:
        self.fd, self.inner = pty.openpty()
        fcntl.ioctl(self.inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
        self._drawn = b""
        asyncio.get_running_loop().add_reader(self.fd, self._take)

    @property
    def text(self) -> str:
        """What was drawn."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._drawn.decode(errors="replace"))

    async def until(self, pattern: str) -> None:
        """Wait until something that matches was drawn."""

        async def drawn() -> str:
            return self.text

        await eventually(drawn, lambda text: re.search(pattern, text) is not None)

    def _take(self) -> None:
        with suppress(OSError):  # its other end is closed
            self._drawn += os.read(self.fd, 1 << 16)

    def close(self) -> None:
        """Take it away."""
        asyncio.get_running_loop().remove_reader(self.fd)
        os.close(self.fd)
        os.close(self.inner)


@asynccontextmanager
async def on_terminal(client: Client, *words: str) -> AsyncIterator[tuple[Terminal, Process]]:
    """Run a `toolcrib` command on a terminal."""
    terminal = Terminal()
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "TEMPORAL_ADDRESS": client.service_client.config.target_host,
        "TEMPORAL_NAMESPACE": client.namespace,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    inner = terminal.inner
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, *words, env=environment, stdin=inner, stdout=inner, stderr=inner
    )
    try:
        yield terminal, process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        terminal.close()


async def test_a_terminal_shows_bars(lab: Lab) -> None:
    """With name, time and device, also of one that never reports; what has ended stays as a line."""
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED, devices=[slot("a"), slot("b")]):
        loud = await crib.submit("bars-loud", name="[bold]loud[/bold]")
        silent = await crib.submit("bars-silent", name="silent")
        await until_status(loud, "dispatched")
        await until_status(silent, "dispatched")
        async with on_terminal(lab.client, "watch", "--pool", "lab") as (terminal, process):
            await terminal.until(r"silent +━+ +[1-9][0-9]*s +dispatched on lab-1/[ab]")
            (await controlled.context("bars-loud")).progress(0.5, "half of it")
            await terminal.until(r"\[bold\]loud\[/bold\] +━{10}╺━{9} +[0-9]+s +dispatched on lab-1/[ab] 50% half of it")
            controlled.finish("bars-loud")
            await terminal.until(rf"{loud.id}  \[bold\]loud\[/bold\]: done on lab-1/[ab]")
            controlled.fail("bars-silent", RunFailed("a very [red]bad[/red] end"))
            await terminal.until(rf"{silent.id}  silent: failed: a very \[red\]bad\[/red\] end")
            assert await asyncio.wait_for(process.wait(), PATIENCE) == 0


async def test_a_pipe_gets_a_line_for_each_change_and_json_a_task_a_line(lab: Lab, tmp_path: Path) -> None:
    """Nothing but them: whatever `-o` says, each line is whole as soon as the change is known."""
    crib = await lab.pool()
    async with lab.host(goal=CONTROLLED):
        task = await crib.submit("pipe")
        await until_status(task, "dispatched")
        lines = asyncio.create_task(command(lab.client, tmp_path / "lines", "watch", task.id))
        views = asyncio.create_task(command(lab.client, tmp_path / "json", "watch", task.id, "-o", "json"))
        for folder in ("lines", "json"):
            await _written(tmp_path / folder / "log", "dispatched")
        (await controlled.context("pipe")).progress(0.5, "half")
        await until(task, lambda view: view.progress == 0.5)
        for folder in ("lines", "json"):
            await _written(tmp_path / folder / "log", "half")
        controlled.finish("pipe")
        code, said = await lines
        assert (code, said.splitlines()) == (
            0,
            [f"{task.id}  pipe: dispatched on lab-1/slot-1{more}" for more in ("", " 50% half")]
            + [f"{task.id}  pipe: done on lab-1/slot-1"],
        )
        code, said = await views
    assert code == 0
    seen = [json.loads(line) for line in said.splitlines()]
    assert [(view["status"], view.get("progress")) for view in seen] == [
        ("dispatched", None),
        ("dispatched", 0.5),
        ("done", 1.0),
    ]


async def _written(file: Path, text: str) -> None:
    async def content() -> str:
        return file.read_text() if file.exists() else ""

    await eventually(content, lambda found: text in found)

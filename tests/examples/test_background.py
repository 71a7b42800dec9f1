"""The example of an application with background work, run as a person runs it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.lab import PATIENCE, Lab, until_pool
from toolcrib.client import TaskView, Toolcrib

PROGRAM = Path(__file__).parents[2] / "examples" / "background" / "import_documents.py"


class Application:
    """The example, running; and what it said so far."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.said: list[str] = []

    async def says(self, text: str) -> None:
        """Wait until it says something in which `text` occurs."""
        assert self.process.stdout is not None
        async with asyncio.timeout(2 * PATIENCE):
            while not self.said or text not in self.said[-1]:
                line = await self.process.stdout.readline()
                assert line, self.said
                self.said.append(line.decode().rstrip())

    async def ends(self) -> int | None:
        """Wait for its end, and return its exit code."""
        await self.process.communicate()
        return self.process.returncode


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of documents: two short ones, and two of 50 steps each, and one behind them."""
    documents = {
        "a": "Hello, hello world\n",
        "b": "",
        "c-long": "one\n" * 1_000,
        "d-long": "two\n" * 1_000,
        "e-long": "x\n",
    }
    found = tmp_path / "letters"
    found.mkdir()
    for name, text in documents.items():
        (found / f"{name}.txt").write_text(text, encoding="utf-8")
    return found


@asynccontextmanager
async def application(lab: Lab, folder: Path, *options: str) -> AsyncIterator[Application]:
    """Run the example against the lab's scheduler; it is killed with the context."""
    environment: Mapping[str, str] = {
        **os.environ,
        "TEMPORAL_ADDRESS": lab.client.service_client.config.target_host,
        "TEMPORAL_NAMESPACE": lab.client.namespace,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    arguments = (str(PROGRAM), str(folder), "--id", "letters", "--index", str(folder / "index.json"), *options)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=PIPE
    )
    try:
        yield Application(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def indexed(folder: Path) -> dict[str, Any]:
    """Return the index, by file."""
    return {entry["file"]: entry for entry in json.loads((folder / "index.json").read_text(encoding="utf-8"))}


async def group(lab: Lab) -> dict[str, TaskView]:
    """Return the tasks of the import, by name."""
    return {view.name: view for view in await lab.crib.group("letters").tasks()}


async def all_free(crib: Toolcrib) -> None:
    """Wait until no slot is taken and nothing waits."""
    await until_pool(crib, lambda pool: pool.queued == pool.leased == 0)


async def test_all_documents_are_imported(lab: Lab, folder: Path) -> None:
    """Each as a task of one group, with progress; the index is an external task, and has what the works returned."""
    async with application(lab, folder) as app:
        await app.says("imported 5 of 5 documents")
        assert await app.ends() == 0
    index = indexed(folder)
    assert list(index) == ["a.txt", "b.txt", "c-long.txt", "d-long.txt", "e-long.txt"]
    assert index["a.txt"] == {"file": "a.txt", "lines": 1, "words": {"hello": 2, "world": 1}}
    assert index["c-long.txt"]["words"] == {"one": 1_000}
    tasks = await group(lab)
    job = tasks.pop("write the index")
    assert (job.state, job.progress, job.message, job.device_id) == ("completed", 1.0, "5 of 5 documents", None)
    assert {view.work for view in tasks.values()} == {"import-document"}
    assert {view.state for view in tasks.values()} == {"completed"}
    assert (await lab.crib.group("letters").show()).progress == 1.0
    await all_free(lab.crib)


async def test_ctrl_c_cancels_what_is_left(lab: Lab, folder: Path) -> None:
    """What runs is told to stop, what waits never starts, and the index has what was imported."""
    async with application(lab, folder, "--pause", "1") as app:
        await app.says("d-long.txt: running")
        app.process.send_signal(signal.SIGINT)
        await app.says("imported 2 of 5 documents")
        assert await app.ends() == 0
    assert list(indexed(folder)) == ["a.txt", "b.txt"]
    tasks = await group(lab)
    states = {name: view.state for name, view in tasks.items() if name.endswith("-long.txt")}
    assert set(states.values()) == {"cancelled"}
    assert tasks["e-long.txt"].attempts == []
    await all_free(lab.crib)


async def test_killed_and_started_again_it_finds_its_tasks(lab: Lab, folder: Path) -> None:
    """What was done stays done, what ran is tried again at once, and what waited is run; nothing is imported twice."""
    pause = ("--pause", "0.1")
    async with application(lab, folder, *pause) as app:
        await app.says("d-long.txt: running")
        app.process.kill()
        await app.ends()
    before = await group(lab)
    assert (before["a.txt"].state, before["d-long.txt"].state, before["e-long.txt"].state) == (
        "completed",
        "running",
        "pending",
    )
    async with application(lab, folder, *pause) as app:
        await app.says("imported 5 of 5 documents")
        assert await app.ends() == 0
    after = await group(lab)
    assert {name: view.id for name, view in after.items() if name in before} == {
        name: view.id for name, view in before.items()
    }
    outcomes = {name: [attempt.outcome for attempt in view.attempts] for name, view in after.items()}
    assert outcomes["a.txt"] == outcomes["e-long.txt"] == ["done"]
    assert outcomes["d-long.txt"] == ["expired", "done"]
    assert len(indexed(folder)) == 5
    await all_free(lab.crib)

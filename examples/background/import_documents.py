"""Imports a folder of text documents in the background, one task each, and writes an index of their words.

    python import_documents.py FOLDER

It needs a scheduler: toolcrib up --devices 0. Ctrl-C cancels what has not been imported yet; the index has the rest.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import signal
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

from toolcrib.client import Group, TaskHandle, Toolcrib, ToolcribError, WorkContext

SLOTS = 2
LINES_A_STEP = 20


def import_document(file: str, pause: float, context: WorkContext) -> dict[str, Any]:
    """Count the words of one document: the work. It reports how far it is, and there it ends when it is cancelled."""
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    words: Counter[str] = Counter()
    for number, line in enumerate(lines):
        if number % LINES_A_STEP == 0:
            context.progress(number / len(lines), f"line {number} of {len(lines)}")
            time.sleep(pause)
        words.update(re.findall(r"\w+", line.lower()))
    return {"file": Path(file).name, "lines": len(lines), "words": dict(words.most_common(10))}


async def follow(task: TaskHandle) -> None:
    """Say how a document's import goes, until it has ended."""
    async for view in task.watch():
        done = "" if view.progress is None else f" {view.progress:.0%}"
        print(f"{view.name}: {view.state}{done} {view.message or ''}".rstrip(), flush=True)


async def write_index(crib: Toolcrib, group: Group, tasks: list[TaskHandle], index: Path) -> int:
    """Write what was imported to a file: work that the application does itself, shown as an external task."""
    async with crib.external("write the index", group=group) as job:
        views = [await task.status() for task in tasks]
        found = [view.result for view in views if view.state == "completed"]
        await job.progress(0.5, f"{len(found)} of {len(views)} documents")
        index.write_text(json.dumps(found, indent=2), encoding="utf-8")
    return len(found)


async def cancel_when_told(crib: Toolcrib, group: Group, told: asyncio.Event) -> None:
    """Cancel what is left of the import, again and again: what was submitted just now may not be in the group yet."""
    await told.wait()
    while True:
        await crib.group(group.id).cancel()
        await asyncio.sleep(1)


async def submit(crib: Toolcrib, file: Path, group: Group, pause: float) -> TaskHandle:
    """Have a document imported; if it was submitted for this import before, that task is the one."""
    return await crib.submit(
        work="import-document",
        inputs={"file": str(file), "pause": pause},
        name=file.name,
        group=group,
        key=f"{group.id}.{hashlib.sha256(file.name.encode()).hexdigest()[:16]}",
    )


async def run(folder: Path, index: Path, pause: float, import_id: str) -> None:
    """Import all documents of a folder, and say how it went."""
    crib = await Toolcrib.connect()
    crib.work("import-document")(import_document)
    group, told = Group(import_id, f"documents of {folder.name}"), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, told.set)
    print(f"import {import_id}: to go on with it after a crash, add --id {import_id}", flush=True)
    async with crib.worker(slots=SLOTS, drain_timeout=2):
        tasks = [await submit(crib, file, group, pause) for file in sorted(folder.glob("*.txt"))]
        cancelling = asyncio.create_task(cancel_when_told(crib, group, told))
        await asyncio.gather(*map(follow, tasks))
        cancelling.cancel()
        imported = await write_index(crib, group, tasks, index)
    print(f"imported {imported} of {len(tasks)} documents into {index}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Import a folder of text documents in the background.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--index", type=Path, default=Path("index.json"), help="where the index goes")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to rest before each 20 lines, to watch it")
    parser.add_argument("--id", default=f"import-{uuid.uuid4().hex[:8]}", help="of an import to go on with")
    options = parser.parse_args()
    try:
        asyncio.run(run(options.folder.absolute(), options.index, options.pause, options.id))
    except ToolcribError as error:
        parser.exit(error.exit_code, f"{error.message}\n{error.hint or ''}\n")


if __name__ == "__main__":
    main()

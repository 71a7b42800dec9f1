"""Records the histories in `histories/` anew: `make histories`. All scenarios run at the same time."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from replay.definition_scenarios import DEFINITION_SCENARIOS
from replay.pool_scenarios import POOL_SCENARIOS
from replay.task_scenarios import TASK_SCENARIOS
from temporalio.client import WorkflowHandle

from support.histories import FOLDER, dumped
from support.lab import Lab
from support.servers import connect, fresh_namespace
from toolcrib.client import Toolcrib
from toolcrib.worker.embedded import EmbeddedServer
from toolcrib.worker.scheduler_role import scheduler_role

Scenario = Callable[[Lab], Awaitable[list[WorkflowHandle[Any, Any]]]]

AT_ONCE: Final = 8
"""Scenarios under way at the same time."""


async def main() -> None:
    """Run every scenario, and then replace what is in the folder."""
    gate = asyncio.Semaphore(AT_ONCE)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"TOOLCRIB_HOME": f"{folder}/home", "TOOLCRIB_LOCKS": f"{folder}/locks"}
        async with EmbeddedServer(port=0, headless=True) as server, asyncio.TaskGroup() as group:
            recordings = [
                group.create_task(_recorded(server.address, scenario, Path(folder), gate))
                for scenario in (*POOL_SCENARIOS, *TASK_SCENARIOS, *DEFINITION_SCENARIOS)
            ]
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for recording in recordings:
        for name, text in recording.result().items():
            (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
            print(f"{name}: {len(text):,} bytes")  # noqa: T201 - this is a program


async def _recorded(address: str, scenario: Scenario, folder: Path, gate: asyncio.Semaphore) -> dict[str, str]:
    """Act out one scenario in a namespace of its own, and return its histories by the names of their files."""
    name = scenario.__name__.replace("_", "-")
    async with gate:
        client = await connect(address, await fresh_namespace(address))
        async with scheduler_role(client):
            runs = await scenario(Lab(client, Toolcrib(client), folder / name))
            texts = [dumped(await run.fetch_history()) for run in runs]
    return {name if len(texts) == 1 else f"{name}-{number}": text for number, text in enumerate(texts, 1)}


if __name__ == "__main__":
    asyncio.run(main())

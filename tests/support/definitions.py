"""Workflow definitions for tests: they are put into a folder, and run by a host that has it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowHistory

from toolcrib.activities.context import InfrastructureFailed
from toolcrib.client import TaskHandle
from toolcrib.scheduling.names import leased_workflow_id


def put(folder: Path, name: str, *steps: Mapping[str, Any], **rest: Any) -> None:
    """Put a definition into the folder; steps are of runner `shell` and named s1, s2, ... if they do not say."""
    named = [{"id": f"s{number}", **step} for number, step in enumerate(steps, start=1)]
    data = {"name": name, "steps": named, **rest}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")


async def run_of(client: Client, task: TaskHandle, attempt: int = 1) -> WorkflowExecutionDescription:
    """Return how the run of the definition is that was started under an attempt of the task."""
    return await client.get_workflow_handle(await _id_of(task, attempt)).describe()


async def history_of(client: Client, task: TaskHandle) -> WorkflowHistory:
    """Return what the run under the first attempt did."""
    return await client.get_workflow_handle(await _id_of(task, 1)).fetch_history()


async def _id_of(task: TaskHandle, attempt: int) -> str:
    lease_id = (await task.status()).attempts[attempt - 1].lease_id
    assert lease_id is not None
    return leased_workflow_id(lease_id)


def called(text: str, **numbers: float) -> dict[str, Any]:
    """Be the function of a `python` step: print, and return what it was given."""
    print(f"called with {text}")  # noqa: T201 - a test reads it
    return {"text": text, "sum": sum(numbers.values()), "device": os.environ["TOOLCRIB_DEVICE_ID"]}


def blame() -> None:
    """Be a function that finds the infrastructure broken."""
    raise InfrastructureFailed("the relay is stuck")

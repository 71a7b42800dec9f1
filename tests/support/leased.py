"""A plugin with workflows and activities that tests run under leases, as `--plugin support.leased`."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

from toolcrib.worker import LeasedInput, current_lease

PLUGIN = "support.leased"
LONG = timedelta(hours=1)
ONCE = RetryPolicy(maximum_attempts=1)


@activity.defn
async def look(word: str) -> dict[str, Any]:
    """Return what an activity that is async sees of its lease, after it has reported progress."""
    lease = current_lease()
    lease.progress(0.5, word)
    activity.heartbeat(word)
    (lease.artifacts / "note").write_text(word)
    await asyncio.sleep(0)
    return {"device": lease.device.id, "fencing": lease.fencing, "lease": lease.lease.id}


@activity.defn
def look_sync(word: str) -> str:
    """Return the id of the lease that an activity in a thread sees, after it has reported progress."""
    current_lease().progress(0.75, word)
    return current_lease().lease.id


@activity.defn
async def wait_for(file: str) -> str:
    """Write down that it runs, wait for a file, and write down how it ended."""
    note = Path(file)
    try:
        note.with_suffix(".begun").write_text(str(os.getpid()))
        while not await asyncio.to_thread(note.exists):
            current_lease()
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        note.with_suffix(".cancelled").touch()
        raise
    return "found"


@activity.defn
async def block(file: str) -> str:
    """Block the loop it runs in until there is a file."""
    Path(file).with_suffix(".begun").touch()
    while not Path(file).exists():
        time.sleep(0.05)  # noqa: ASYNC251 - that is what it is for
    return "found"


@activity.defn
async def break_down() -> None:
    """Fail for good."""
    raise ApplicationError("the board does not boot", non_retryable=True)


@workflow.defn
class Looks:
    """Returns what it was told, and what its activities and its child's see."""

    @workflow.run
    async def run(self, given: LeasedInput) -> dict[str, Any]:
        """Look about."""
        word = given.inputs["word"]
        return {
            "task": given.task_id,
            "attempt": given.attempt,
            "device": given.device.id,
            "tags": list(given.device.tags),
            "environment": given.environment["TOOLCRIB_LEASE_ID"],
            "seen": await workflow.execute_activity(look, word, start_to_close_timeout=LONG),
            "sync": await workflow.execute_activity(look_sync, word, start_to_close_timeout=LONG),
            "local": await workflow.execute_local_activity(look_sync, word, start_to_close_timeout=LONG),
            "child": await workflow.execute_child_workflow(Child.run, word),
        }


@workflow.defn
class Child:
    """A workflow that another one starts."""

    @workflow.run
    async def run(self, word: str) -> str:
        """Return which lease its activity sees."""
        return await workflow.execute_activity(look_sync, word, start_to_close_timeout=LONG)


@workflow.defn
class Waits:
    """Waits for a file, in an activity that does not heartbeat: nobody but its host tells it that it is cancelled."""

    @workflow.run
    async def run(self, given: LeasedInput) -> str:
        """Wait."""
        found: str = await workflow.execute_activity(
            given.inputs.get("activity", "wait_for"),
            given.inputs["file"],
            result_type=str,
            start_to_close_timeout=LONG,
            retry_policy=ONCE,
        )
        return found


@workflow.defn
class Stubborn:
    """Cannot be cancelled."""

    @workflow.run
    async def run(self, given: LeasedInput) -> None:
        """Go on for ever."""
        while True:
            try:
                await workflow.sleep(3600)
            except asyncio.CancelledError:
                continue


@workflow.defn
class Fails:
    """Fails in the way that it is told."""

    @workflow.run
    async def run(self, given: LeasedInput) -> None:
        """Fail."""
        if given.inputs["how"] == "activity":
            await workflow.execute_activity(break_down, start_to_close_timeout=LONG)
        raise ValueError("a mistake in the workflow's code")


WORKFLOWS = [Looks, Child, Waits, Stubborn, Fails]
ACTIVITIES = [look, look_sync, wait_for, block, break_down]

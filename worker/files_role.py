"""What a host does for its files: it answers who asks for them, and deletes what has outlived its time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import structlog
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.worker import (
    HandleQueryInput,
    Interceptor,
    Worker,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from toolcrib.activities.lease_folders import LeaseFolders
from toolcrib.activities.retention import Retention
from toolcrib.activities.retrying import is_unanswered, retried
from toolcrib.scheduling.names import HOST_FILES, host_files_queue, host_files_workflow_id
from toolcrib.worker.host_file import HostFile
from toolcrib.worker.scheduler_role import workflow_runner
from toolcrib.workflows.contract import FILES_LIST, FILES_READ
from toolcrib.workflows.host_files import HostFiles

SWEEP_PAUSE: Final = 60.0
"""Seconds between two looks at what may go, at least."""
SWEEP_EVERY: Final = 3_600.0
"""Seconds after which it is looked at though no lease has ended."""
QUERIES_AT_ONCE: Final = 4

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def files_role(client: Client, host: HostFile, folders: LeaseFolders) -> AsyncIterator[None]:
    """Answer for the files of a host, and keep them within bounds, as long as the context is open."""
    async with Worker(
        client,
        task_queue=host_files_queue(host.id),
        workflows=[HostFiles],
        workflow_runner=workflow_runner(),
        interceptors=[FileAnswers(folders)],
        max_cached_workflows=0,  # else the server would ask a worker that has died for a while
        max_concurrent_workflow_tasks=QUERIES_AT_ONCE,
        max_concurrent_workflow_task_polls=1,
    ):
        beside = [asyncio.create_task(_be_asked(client, host.id)), asyncio.create_task(_sweep(host, folders))]
        try:
            yield
        finally:
            for task in beside:
                task.cancel()
            await folders.settled()


class FileAnswers(Interceptor):
    """Has the queries of `HostFiles` answered from the files of one host; the workflow itself has none."""

    def __init__(self, folders: LeaseFolders) -> None:
        self._answers: dict[str, Callable[[Any], Any]] = {FILES_READ: folders.read, FILES_LIST: folders.listed}

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002
        """Return what stands before the workflow."""
        answers = self._answers

        class Answering(WorkflowInboundInterceptor):
            async def handle_query(self, input: HandleQueryInput) -> Any:  # noqa: A002
                return answers[input.query](*input.args)

        return Answering


async def _be_asked(client: Client, host_id: str) -> None:
    """See to it that there is the workflow that is asked; one that runs already serves as well."""
    await retried(
        lambda: client.start_workflow(
            HOST_FILES,
            id=host_files_workflow_id(host_id),
            task_queue=host_files_queue(host_id),
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            static_summary=f"Logs and artifacts of host {host_id}",
        ),
        is_unanswered,
        patience=None,
        longest_pause=5.0,
    )


async def _sweep(host: HostFile, folders: LeaseFolders) -> None:
    retention = Retention(folders.kept, host.keep, folders.is_open)
    while True:
        folders.ended.clear()
        try:
            for name in await asyncio.to_thread(retention.sweep, time.time()):
                _log.info("deleted what an attempt had left", host=host.id, attempt=name)
        except OSError as error:
            _log.warning("could not look for logs and artifacts to delete", host=host.id, reason=str(error))
        await asyncio.sleep(SWEEP_PAUSE)
        try:
            async with asyncio.timeout(SWEEP_EVERY):
                await folders.ended.wait()
        except TimeoutError:
            continue

"""Reads what an attempt has left on its host, by queries to that host, which leave nothing in any history."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import timedelta
from typing import Any, Final, TypeVar

from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.activities.retrying import retried
from toolcrib.scheduling.errors import HostUnreachable, UnknownAttempt, UnknownFile
from toolcrib.scheduling.host_files import (
    Answer,
    Artifact,
    ArtifactList,
    ArtifactsRequest,
    FilePiece,
    FileRequest,
)
from toolcrib.scheduling.names import host_files_workflow_id
from toolcrib.scheduling.quoting import shown
from toolcrib.scheduling.views import AttemptView, TaskView
from toolcrib.workflows.contract import FILES_LIST, FILES_READ

ANSWER_WITHIN: Final = timedelta(seconds=5)
PATIENCE: Final = 5.0
"""Seconds for which a question is put again that the server does not pass on just now."""
_BUSY: Final = (RPCStatusCode.RESOURCE_EXHAUSTED, RPCStatusCode.UNAVAILABLE, RPCStatusCode.ABORTED)
_AWAY: Final = (
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.NOT_FOUND,
    RPCStatusCode.FAILED_PRECONDITION,
)

Found = TypeVar("Found", bound=Answer)


def attempt_of(view: TaskView, number: int | None) -> AttemptView:
    """Return an attempt of a task, by default the last one.

    Raises:
        UnknownAttempt: it has none of that number, or none at all.
    """
    for attempt in reversed(view.attempts):
        if number in (None, attempt.number):
            return attempt
    raise UnknownAttempt.named(view.id, number, len(view.attempts))


class AttemptFiles:
    """What one attempt has left on its host.

    Every call raises `HostUnreachable` if the host does not answer within some seconds, and `UnknownFile` if it does
    not have what is asked for.
    """

    def __init__(self, client: Client, attempt: AttemptView) -> None:
        self._client = client
        self._attempt = attempt
        self._task_id = attempt.lease_id.rsplit(".", 2)[0]

    async def log(self, offset: int) -> FilePiece:
        """Return a piece of the log."""
        wanted = FileRequest(task_id=self._task_id, attempt=self._attempt.number, offset=offset)
        return self._found(await self._ask(FILES_READ, wanted, FilePiece), self._no_log())

    async def content(self, path: str) -> AsyncGenerator[bytes]:
        """Yield an artifact in pieces."""
        offset, size = 0, None
        while size is None or offset < size:
            wanted = FileRequest(task_id=self._task_id, attempt=self._attempt.number, artifact=path, offset=offset)
            piece = self._found(await self._ask(FILES_READ, wanted, FilePiece), self._no_artifact(path))
            if not piece.data:
                return
            yield piece.data
            offset, size = offset + len(piece.data), piece.size

    async def artifacts(self) -> list[Artifact]:
        """Return all artifacts, by their paths."""
        artifacts: list[Artifact] = []
        more = True
        while more:
            after = artifacts[-1].path if artifacts else ""
            wanted = ArtifactsRequest(task_id=self._task_id, attempt=self._attempt.number, after=after)
            found = self._found(await self._ask(FILES_LIST, wanted, ArtifactList), self._no_log())
            artifacts += found.artifacts
            more = found.more and bool(found.artifacts)
        return artifacts

    async def _ask(self, query: str, wanted: object, kind: type[Found]) -> Found:
        host: WorkflowHandle[Any, Any]
        host = self._client.get_workflow_handle(host_files_workflow_id(self._attempt.host_id))
        ask: Callable[[], Awaitable[Found]] = lambda: host.query(  # noqa: E731
            query, wanted, result_type=kind, rpc_timeout=ANSWER_WITHIN
        )
        try:
            return await retried(ask, _is_busy, patience=PATIENCE, longest_pause=1.0)
        except RPCError as error:
            if error.status in _AWAY:
                raise HostUnreachable.named(self._attempt.host_id) from None
            raise

    def _found(self, answer: Found, otherwise: UnknownFile) -> Found:
        if not answer.found:
            raise otherwise
        return answer

    def _no_log(self) -> UnknownFile:
        what, host = f"attempt {self._attempt.number} of task {self._task_id}", self._attempt.host_id
        if self._attempt.claimed_at is None:
            return UnknownFile(f"{what} has no log: its work never began", hint=f"See: toolcrib status {self._task_id}")
        return UnknownFile(
            f"host {host} no longer has what {what} has left",
            hint="Hosts keep logs and artifacts for 30 days and up to 10 GiB, unless their file says otherwise: keep",
        )

    def _no_artifact(self, path: str) -> UnknownFile:
        return UnknownFile(
            f"attempt {self._attempt.number} of task {self._task_id} has no artifact {shown(path)}, or no longer",
            hint=f"See what it has: toolcrib artifacts {self._task_id} --attempt {self._attempt.number}",
        )


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, RPCError) and error.status in _BUSY

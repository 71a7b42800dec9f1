"""HostFiles: where a host is asked for its logs and artifacts, by queries, which leave nothing in any history."""

from __future__ import annotations

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from toolcrib.scheduling.host_files import ArtifactList, ArtifactsRequest, FilePiece, FileRequest
from toolcrib.scheduling.names import HOST_FILES
from toolcrib.workflows.contract import FILES_LIST, FILES_READ

_NO_FILES = "this worker has no files"


@workflow.defn(name=HOST_FILES)
class HostFiles:
    """Stays as it is for ever, in four events. Its host's worker answers the queries: see `worker.files_role`."""

    @workflow.run
    async def run(self) -> None:
        """Wait, for nothing."""
        await workflow.wait_condition(lambda: False)

    @workflow.query(name=FILES_READ)
    def read(self, wanted: FileRequest) -> FilePiece:
        """Return a piece of a log or artifact."""
        raise ApplicationError(_NO_FILES)

    @workflow.query(name=FILES_LIST)
    def artifacts(self, wanted: ArtifactsRequest) -> ArtifactList:
        """Return the artifacts of an attempt."""
        raise ApplicationError(_NO_FILES)

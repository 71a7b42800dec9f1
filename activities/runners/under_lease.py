"""Runs Temporal workflows under leases: on their host's work queue, for as long as the lease is held."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

import structlog
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import (
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    ChildWorkflowError,
    FailureError,
    TerminatedError,
    WorkflowAlreadyStartedError,
)
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.activities.brought import Brought
from toolcrib.activities.context import InfrastructureFailed, LeaseContext, RunFailed
from toolcrib.activities.guard import GuardLost, NotKilled
from toolcrib.activities.held_leases import HeldLease, HeldLeases
from toolcrib.activities.retrying import retried
from toolcrib.activities.run_records import RunRecords
from toolcrib.activities.runners.aside import STOP_WITHIN, StillRunning
from toolcrib.activities.undisturbed import undisturbed
from toolcrib.scheduling.errors import ERRORS_BY_CODE, NoConnection
from toolcrib.scheduling.names import host_work_queue, leased_workflow_id
from toolcrib.workflows.failures import from_failure

GRACE: Final = 3.0
"""Seconds that a cancelled workflow gets to end by itself."""
TERMINATION: Final = 1.0
"""Seconds to wait until the server has terminated a workflow; if it does not answer, it is asked on and on."""
ANSWER_WITHIN: Final = 30.0
"""Seconds in which the server has to say, at a host's start, that the workflows of its earlier life are over."""
LONGEST_PAUSE: Final = 2.0
RPC_TIMEOUT: Final = timedelta(seconds=5)

_FINAL: Final = (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.PERMISSION_DENIED)
_OF_THE_HOST: Final = (InfrastructureFailed.code, GuardLost.code, NotKilled.code)
"""Failures that are no verdict on the work."""
_POOL: Final = SearchAttributeKey.for_keyword("ToolcribPool")
_HOST: Final = SearchAttributeKey.for_keyword("ToolcribHost")
_DEVICE: Final = SearchAttributeKey.for_keyword("ToolcribDevice")
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class HostWork:
    """What a runner that runs workflows under leases gets of its host."""

    host_id: str
    runs: LeasedRuns
    plugins: Brought
    """What the plugins of this worker bring."""
    definitions: Path | None = None
    """The folder of workflow definitions that the host's file names."""


@runtime_checkable
class HostedRunner(Protocol):
    """A runner that runs workflows under leases."""

    @property
    def references(self) -> tuple[str, ...]:
        """The workflow references that it runs, `name` or `name@version`; the host tells its pool once it has begun."""

    def begin(self, host: HostWork) -> Brought:
        """Return what the work queue's worker is to have for this runner. Called once, before its first run.

        Raises:
            InvalidRequest: the host has not what the runner needs.
        """


class LeasedRuns:
    """Starts workflows under the leases of one host, and sees to it that none outlives its lease."""

    def __init__(self, client: Client, host_id: str, pool: str, records: RunRecords) -> None:
        self.held = HeldLeases()
        self._client = client
        self._queue = host_work_queue(host_id)
        self._pool = pool
        self._records = records
        self._ending: set[asyncio.Task[None]] = set()

    async def run(self, context: LeaseContext, workflow: str, argument: Any) -> Any:
        """Run the workflow of that type with one argument, and return its result.

        Its id is `toolcrib-run-` and the lease's. Cancelled, the workflow is cancelled, and terminated if it has not
        ended in time; it is terminated at once when the lease is lost. Its activities run only while it is held.

        Raises:
            RunFailed: the workflow failed, was cancelled or terminated by somebody else, or cannot be started.
            InfrastructureFailed: it failed by that, by the guard's death, or by processes that cannot be ended.
            StillRunning: this was cancelled, and an activity does not end.
        """
        workflow_id = leased_workflow_id(context.lease.id)
        handle: WorkflowHandle[Any, Any] = self._client.get_workflow_handle(workflow_id)
        self._records.note(workflow_id)
        held, closed = self.held.open(context), False
        try:
            await self._start(context, workflow, argument, workflow_id)
            result = await _result_of(handle)
            closed = True
        except WorkflowFailureError as failure:
            raise _verdict(workflow, failure) from failure
        except RPCError as error:
            raise RunFailed(f"workflow {workflow!r} cannot be run: {error.message}") from error
        except asyncio.CancelledError:
            await undisturbed(self._stop(handle, held, context))
            raise
        finally:
            if not held.over:
                await undisturbed(self._leave(handle, held, closed=closed))
        return result

    async def end_predecessors(self) -> None:
        """Terminate what an earlier life of this host has left running; to be called before anything is polled.

        Raises:
            NoConnection: the server does not answer.
        """
        left = self._records.all()
        try:
            await asyncio.gather(*(self._terminate(workflow_id, patience=ANSWER_WITHIN) for workflow_id in left))
        except RPCError as error:
            raise NoConnection(f"workflows of an earlier life of this host cannot be ended: {error.message}") from error
        if left:
            _log.warning("ended the workflows of an earlier life of this host", workflows=left)

    async def _start(self, context: LeaseContext, workflow: str, argument: Any, workflow_id: str) -> None:
        lease = context.lease
        attributes = TypedSearchAttributes(
            [
                SearchAttributePair(_POOL, self._pool),
                SearchAttributePair(_HOST, lease.host_id),
                SearchAttributePair(_DEVICE, lease.device_key),
            ]
        )

        async def start() -> None:
            await self._client.start_workflow(
                workflow,
                argument,
                id=workflow_id,
                task_queue=self._queue,
                # The limit itself is the host's to enforce; the server's comes after it, for a host that is gone.
                execution_timeout=timedelta(seconds=max(context.deadline - time.time(), 0.0) + STOP_WITHIN),
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                search_attributes=attributes,
                static_summary=f"{lease.task_id}, attempt {lease.attempt} on {lease.device_key}",
                rpc_timeout=RPC_TIMEOUT,
            )

        try:
            await retried(start, _may_pass, patience=None, longest_pause=LONGEST_PAUSE)
        except WorkflowAlreadyStartedError:
            return  # by a call of ours whose answer was lost, and it has ended since

    async def _stop(self, handle: WorkflowHandle[Any, Any], held: HeldLease, context: LeaseContext) -> None:
        """End a workflow whose lease ends: in order, if that is still to be had."""
        end = time.monotonic() + STOP_WITHIN
        closed = not context.lost() and await _cancelled(handle, context)
        await self._leave(handle, held, closed=closed, within=end - time.monotonic())
        if not all(user.done() for user in context.users):
            raise StillRunning(
                f"an activity under lease {context.lease.id} did not stop within {STOP_WITHIN:g} s and keeps "
                f"{context.device.id}"
            )

    async def _leave(
        self, handle: WorkflowHandle[Any, Any], held: HeldLease, *, closed: bool, within: float = STOP_WITHIN
    ) -> None:
        """Give up the lease's activities, and see to it that its workflow does not go on."""
        if closed:
            self._records.forget(handle.id)
            await held.close(within)
            return
        # The server may be out of reach, and this be over before it answers; then the host's next life asks again.
        terminating = asyncio.create_task(self._terminate(handle.id, patience=None))
        self._ending.add(terminating)
        terminating.add_done_callback(self._ending.discard)
        await held.close(within)
        await asyncio.wait({terminating}, timeout=TERMINATION)

    async def _terminate(self, workflow_id: str, *, patience: float | None) -> None:
        handle: WorkflowHandle[Any, Any] = self._client.get_workflow_handle(workflow_id)

        async def terminate() -> None:
            try:
                await handle.terminate(reason="its lease is over", rpc_timeout=RPC_TIMEOUT)
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:  # it has ended, or was never started
                    raise

        await retried(terminate, _may_pass, patience=patience, longest_pause=LONGEST_PAUSE)
        self._records.forget(workflow_id)


async def _result_of(handle: WorkflowHandle[Any, Any]) -> Any:
    return await retried(handle.result, _may_pass, patience=None, longest_pause=LONGEST_PAUSE)


async def _cancelled(handle: WorkflowHandle[Any, Any], context: LeaseContext) -> bool:
    """Cancel a workflow, and return whether it ended in time; what it returned all the same is kept."""
    try:
        async with asyncio.timeout(GRACE):
            await retried(lambda: handle.cancel(rpc_timeout=RPC_TIMEOUT), _may_pass, patience=None, longest_pause=0.5)
            context.partial_result = await _result_of(handle)
    except WorkflowFailureError:
        return True
    except (TimeoutError, RPCError):
        return False
    return True


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, RPCError) and error.status not in _FINAL


def _verdict(workflow: str, failure: WorkflowFailureError) -> RunFailed | InfrastructureFailed:
    """Return what a workflow's failure says, in the words of whoever raised it first."""
    cause: BaseException | None = failure.cause
    while isinstance(cause, ActivityError | ChildWorkflowError) and cause.cause is not None:
        cause = cause.cause
    if isinstance(cause, ApplicationError):
        if cause.type in _OF_THE_HOST:
            return InfrastructureFailed(cause.message)
        if cause.type not in ERRORS_BY_CODE:
            return RunFailed(f"{cause.type}: {cause.message}" if cause.type else cause.message)
        ours = from_failure(cause)
        details = cause.details[0] if cause.details and isinstance(cause.details[0], dict) else {}
        return RunFailed(ours.message, hint=ours.hint, code=ours.error_code, result=details.get("result"))
    if isinstance(cause, CancelledError):
        return RunFailed(f"workflow {workflow!r} was cancelled, and not by its task")
    if isinstance(cause, TerminatedError):
        return RunFailed(f"workflow {workflow!r} was terminated: {cause.message}")
    return RunFailed(f"workflow {workflow!r} failed: {cause.message if isinstance(cause, FailureError) else cause}")

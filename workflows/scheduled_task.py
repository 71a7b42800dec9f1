"""ScheduledTask: one submitted task, its attempts, its leases and its result."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from temporalio import workflow
from temporalio.common import RawValue, SearchAttributeKey, SearchAttributeUpdate
from temporalio.exceptions import ActivityError
from temporalio.exceptions import TimeoutError as ActivityTimeout

from toolcrib.scheduling.claims import report_fault
from toolcrib.scheduling.errors import ErrorBody, InvalidRequest, LeaseSuperseded
from toolcrib.scheduling.lease import HOST_CARE, Attempt, Lease
from toolcrib.scheduling.messages import (
    Admission,
    Assignment,
    Claim,
    HostRestarted,
    LeaseOrder,
    Progress,
    Report,
    ReportOutcome,
)
from toolcrib.scheduling.names import SCHEDULED_TASK, host_queue
from toolcrib.scheduling.request import TaskRequest, parse_request
from toolcrib.scheduling.scheduler import RENEW_PLACE_AFTER
from toolcrib.scheduling.task import Offer, Status, TaskRecord
from toolcrib.scheduling.task_view import details, task_view
from toolcrib.scheduling.views import TaskView
from toolcrib.workflows.contract import (
    RUN_LEASE,
    TASK_CLAIM,
    TASK_COME_FORWARD,
    TASK_GRANT,
    TASK_HOST_RESTARTED,
    TASK_ON_RECORD,
    TASK_PROGRESS,
    TASK_VIEW,
)
from toolcrib.workflows.failures import to_failure, told_as_failures
from toolcrib.workflows.pool_calls import ONCE, admit, settle
from toolcrib.workflows.resets import ResetWatch

CONFIRM_GRACE: Final = 5.0
"""Beyond the lease's ttl, a cancelled or unclaimed lease is given so many seconds to be confirmed as over."""

_ADMISSION: Final = TypeAdapter(Admission)
_STATUS: Final = SearchAttributeKey.for_keyword("ToolcribStatus")
_POOL: Final = SearchAttributeKey.for_keyword("ToolcribPool")
_DEVICE: Final = SearchAttributeKey.for_keyword("ToolcribDevice")
_HOST: Final = SearchAttributeKey.for_keyword("ToolcribHost")
_GROUP: Final = SearchAttributeKey.for_keyword("ToolcribGroup")


@workflow.defn(name=SCHEDULED_TASK)
class ScheduledTask:
    """Waits for a device, has one activity run on its host, and gives it back; again if the lease expires.

    `request` is a JSON object with the fields of `TaskRequest`. `admission` is the pool's answer if the task's client
    asked for it beforehand; without one, or with one that is too old, the task asks by itself.
    """

    @workflow.init
    def __init__(self, request: Any = None, admission: Any = None) -> None:
        self._fault: InvalidRequest | None = None
        try:
            parsed = parse_request(request)
        except InvalidRequest as fault:
            self._fault, parsed = fault, TaskRequest.model_construct()
        self._record = TaskRecord(workflow.info().workflow_id, parsed, workflow.time())
        self._placed = False
        self._unwanted: Lease | None = None
        self._activity: workflow.ActivityHandle[Any] | None = None
        self._resets = ResetWatch()
        self._reset_at: float | None = None
        answer = _parse_admission(admission)
        if answer is not None and (self._was_reset() or answer.start_by >= workflow.time()):
            self._accept(answer)

    @workflow.run
    async def run(self, request: Any = None, admission: Any = None) -> Any:
        """Return the task's result; fail or be cancelled as the task does."""
        if self._fault is not None:
            self._record.fail(self._fault.body, workflow.time())
        try:
            await self._live()
        except asyncio.CancelledError:
            await self._cancel()
        await self._finish_handlers()
        self._publish()
        if self._record.status is Status.CANCELLED:
            raise asyncio.CancelledError
        if self._record.error is not None:
            raise to_failure(self._record.error, self._record.result)
        return self._record.result

    @workflow.query(name=TASK_VIEW)
    def view(self) -> TaskView:
        """Return the task as people see it."""
        return task_view(self._record)

    @workflow.signal(name=TASK_GRANT)
    async def grant(self, lease: Lease) -> None:
        """Take the lease that the pool gives, or return it."""
        self._was_reset()
        if self._record.offer(lease, workflow.time()) is Offer.UNWANTED:
            await settle(self._record.request.pool, self._record.turning_down(lease))

    @workflow.signal(name=TASK_COME_FORWARD)
    async def come_forward(self) -> None:
        """Tell the pool, which does not know this task, of its place or its lease."""
        if self._placed and not self._record.ended and not self._was_reset():
            await self._ask_for_place()

    @workflow.signal(name=TASK_PROGRESS)
    def progress(self, report: Progress) -> None:
        """Take note of how far the work is; a report from an older lease is ignored."""
        self._record.progressed(report)
        workflow.set_current_details(details(self._record))

    @workflow.signal(name=TASK_HOST_RESTARTED)
    def host_restarted(self, news: HostRestarted) -> None:
        """Take note of a newer worker of the host: an older one has lost what it had claimed."""
        self._record.host_restarted(news, workflow.time())

    @workflow.query(name=TASK_ON_RECORD)
    def on_record(self, report: Report) -> ErrorBody | None:
        """Return why a host's report is not on record; None if it is, or if its lease has not ended yet."""
        return self._record.on_record(report)

    @workflow.update(name=TASK_CLAIM)
    def claim(self, claim: Claim) -> Assignment:
        """Hand the work to the host that holds the lease; nobody else gets to know it."""
        self._was_reset()
        with told_as_failures():
            self._check_not_reset()
            assignment = self._record.claim(claim, workflow.time())
        self._publish()
        return assignment

    @claim.validator
    def check_claim(self, claim: Claim) -> None:
        """Refuse a claim without a trace in the history."""
        with told_as_failures():
            self._check_not_reset()
            self._record.check_claim(claim, workflow.time())

    # ---- the life

    async def _live(self) -> None:
        record = self._record
        while not record.ended:
            if self._was_reset():
                await self._begin_anew()
            elif not self._placed:
                await self._ask_for_place()
            elif self._unwanted is not None:
                lease, self._unwanted = self._unwanted, None
                await settle(record.request.pool, record.turning_down(lease))
            elif record.attempt is None:
                await self._wait_for_lease()
            else:
                await self._hold(record.attempt)

    async def _wait_for_lease(self) -> None:
        record = self._record
        wait = RENEW_PLACE_AFTER
        if record.waits_until is not None:
            wait = min(wait, record.waits_until - workflow.time())
        try:
            await workflow.wait_condition(
                lambda: record.status is not Status.QUEUED or self._was_reset(), timeout=max(wait, 0.001)
            )
        except TimeoutError:
            if record.give_up_waiting(workflow.time()):
                await self._withdraw()
            else:
                await self._ask_for_place()

    async def _hold(self, attempt: Attempt) -> None:
        """Have the lease's host run it, and take what comes of it."""
        lease, activity = attempt.lease, self._start_activity(attempt.lease)
        self._activity = activity
        patience = lease.claim_by + lease.ttl - workflow.time()

        def over() -> bool:
            return activity.done() or not attempt.open

        try:
            await workflow.wait_condition(
                lambda: over() or attempt.claimed_at is not None, timeout=max(patience, 0.001)
            )
            await workflow.wait_condition(over)
        except TimeoutError:
            await self._stop(activity, attempt)
            self._record.expire("it was not claimed in time", workflow.time())
        if self._was_reset() and attempt.open and not activity.done():
            return
        self._conclude(activity)
        await self._outlast(attempt)
        await settle(self._record.request.pool, self._record.settlement())

    async def _cancel(self) -> None:
        """End the task as cancelled, unless its result was there first; the device goes back when it is free."""
        record, activity = self._record, self._activity
        attempt, confirmed = record.attempt, True
        if attempt is not None and activity is not None and activity.done():
            self._conclude(activity)
        record.cancel(workflow.time())
        if attempt is not None and activity is not None and not activity.done():
            self._publish()
            confirmed = await self._stop(activity, attempt)
        elif record.attempts:
            await self._outlast(record.attempts[-1])
        await self._withdraw(confirmed=confirmed)

    async def _begin_anew(self) -> None:
        """Go on after a reset: with a new place, and a new lease when what was begun before it has ended."""
        record, activity, attempt = self._record, self._activity, self._record.attempt
        if attempt is not None and activity is not None:
            await self._stop(activity, attempt)
        self._activity, self._unwanted, self._reset_at, self._placed = None, None, None, True
        record.begin_anew(workflow.time())
        self._publish()
        self._resets.handled(await settle(record.request.pool, record.resetting()))
        await self._ask_for_place()

    # ---- single steps

    def _was_reset(self) -> bool:
        """Return whether this run was made by a reset that has not been dealt with yet."""
        if self._resets.noticed() and self._resets.at is not None:
            self._reset_at = self._resets.at
            self._record.distrust(self._reset_at)
        return self._reset_at is not None

    def _check_not_reset(self) -> None:
        if self._reset_at is not None:
            raise LeaseSuperseded(f"task {self._record.task_id} was reset; it gets a new lease")

    async def _ask_for_place(self) -> None:
        record, again = self._record, self._placed
        if not again:
            self._publish()
        answer = await admit(record.request.pool, record.entry(known=again))
        if answer.refused is None:
            self._accept(answer)
        elif not again:
            record.fail(answer.refused, workflow.time())

    def _accept(self, admission: Admission) -> None:
        self._placed = True
        if self._record.admitted(admission, workflow.time()) is Offer.UNWANTED:
            self._unwanted = admission.lease
        workflow.set_current_details(details(self._record))

    def _start_activity(self, lease: Lease) -> workflow.ActivityHandle[Any]:
        timeout = self._record.request.timeout
        return workflow.start_activity(
            RUN_LEASE,
            LeaseOrder(lease=lease, pool=self._record.request.pool, timeout=timeout),
            result_type=RawValue,
            task_queue=host_queue(lease.host_id),
            schedule_to_start_timeout=timedelta(seconds=max(lease.claim_by - workflow.time(), 0.001)),
            heartbeat_timeout=timedelta(seconds=lease.ttl),
            start_to_close_timeout=timedelta(seconds=timeout + HOST_CARE + 2 * lease.ttl),
            retry_policy=ONCE,
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            summary=f"attempt {lease.attempt} on {lease.device_key}",
        )

    async def _stop(self, activity: workflow.ActivityHandle[Any], attempt: Attempt) -> bool:
        """Cancel a lease's activity, wait until its work is gone, and return whether its host confirms that it is."""
        await asyncio.sleep(0)  # a result that came together with the cancellation shows only now
        if not activity.done():
            activity.cancel()
        lease = attempt.lease
        try:
            await workflow.wait_condition(activity.done, timeout=lease.ttl + CONFIRM_GRACE)
        except TimeoutError:
            workflow.logger.warning("the host did not confirm the end of a lease", extra={"lease": lease.id})
            return False
        if _confirmed(activity, attempt):
            return True
        if attempt.claimed_at is not None and not _timed_out(activity):
            await workflow.sleep(lease.ttl)
        return False

    async def _outlast(self, attempt: Attempt) -> None:
        """Wait until the host of an attempt that has ended cannot be at work any more, if it did not say so itself."""
        left = (attempt.ended_at or 0.0) + attempt.lease.ttl - workflow.time()
        if attempt.lingers and left > 0:
            await workflow.sleep(left)

    def _conclude(self, activity: workflow.ActivityHandle[Any]) -> None:
        """Take what came of the attempt's activity; a cancellation that follows is not about it."""
        self._activity, record, now = None, self._record, workflow.time()
        if record.attempt is None:
            activity.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            activity.cancel()
            return
        claimed = record.attempt.claimed_at is not None
        if activity.cancelled():
            record.expire("its host gave it up", now, lingers=claimed)
        elif (error := activity.exception()) is not None:
            record.expire(_described(error), now, lingers=claimed and not _timed_out(activity))
        elif (report := _understood(activity)) is None:
            record.refuse("the host's report cannot be understood", now)
        else:
            record.report(report, now)

    async def _finish_handlers(self) -> None:
        """Let handlers end; a cancellation that comes now is too late."""
        with contextlib.suppress(asyncio.CancelledError):
            await workflow.wait_condition(workflow.all_handlers_finished)
        await workflow.wait_condition(workflow.all_handlers_finished)

    async def _withdraw(self, *, confirmed: bool = True) -> None:
        record = self._record
        message = record.resetting() if self._was_reset() else record.withdrawal(confirmed=confirmed)
        await settle(record.request.pool, message)

    def _publish(self) -> None:
        """Show the task's state in search attributes and in the Web UI's details."""
        record, last = self._record, self._record.attempts[-1] if self._record.attempts else None
        updates: list[SearchAttributeUpdate[Any]] = [
            _STATUS.value_set(record.status),
            _POOL.value_set(record.request.pool),
        ]
        if last is not None:
            updates += [_HOST.value_set(last.lease.host_id), _DEVICE.value_set(last.lease.device_key)]
        if record.request.group_id is not None:
            updates.append(_GROUP.value_set(record.request.group_id))
        workflow.upsert_search_attributes(updates)
        workflow.set_current_details(details(record))


def _parse_admission(data: Any) -> Admission | None:
    try:
        return None if data is None else _ADMISSION.validate_python(data)
    except ValidationError:
        return None


def _understood(activity: workflow.ActivityHandle[Any]) -> Report | None:
    """Return what a host reported; None if that makes no sense. It must not stop the task by what it says."""
    raw: RawValue = activity.result()
    try:
        report: Report = workflow.payload_converter().from_payload(raw.payload, Report)
    except (ValueError, TypeError, LookupError, RuntimeError):
        return None
    return report


def _confirmed(activity: workflow.ActivityHandle[Any], attempt: Attempt) -> bool:
    """Return whether a host says itself that nothing of a lease runs any more; of an unclaimed one nothing ever did.

    If it also says why its device is not clean, that is noted.
    """
    if activity.cancelled() or activity.exception() is not None:
        return attempt.claimed_at is None and not _timed_out(activity)
    report = _understood(activity)
    if report is None or report.outcome is ReportOutcome.ABANDONED:
        return False
    if report_fault(attempt, report) is not None:
        return False
    attempt.dirty = report.dirty
    return True


def _timed_out(activity: workflow.ActivityHandle[Any]) -> bool:
    error = None if activity.cancelled() else activity.exception()
    return isinstance(error, ActivityError) and isinstance(error.cause, ActivityTimeout)


def _described(error: BaseException) -> str:
    cause = error.cause if isinstance(error, ActivityError) else error
    if isinstance(cause, ActivityTimeout):
        kind = cause.type.name.lower().replace("_", " ") if cause.type else "unknown"
        return {
            "schedule to start": "no worker of the host took it in time",
            "heartbeat": "the host stopped renewing it",
            "start to close": "it ran far beyond its time limit",
        }.get(kind, kind)
    return f"the host failed: {cause}"

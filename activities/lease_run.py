"""The activity that runs one lease on its host: lock, claim, prepare, run, clean up, report."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Final

import structlog
from temporalio import activity
from temporalio.client import Client

from toolcrib.activities.arrivals import Arrivals
from toolcrib.activities.claiming import claim
from toolcrib.activities.context import InfrastructureFailed, LeaseContext
from toolcrib.activities.dispatcher import TaskDispatcher
from toolcrib.activities.drivers.care import DeviceCare, DriverFailed
from toolcrib.activities.guard import Guard, GuardLost, NotKilled, boottime
from toolcrib.activities.host_keys import HostKeyPair
from toolcrib.activities.incarnation import Incarnation
from toolcrib.activities.lease_folders import LeaseFolders
from toolcrib.activities.lease_proof import LeaseProof
from toolcrib.activities.leftovers import LEASE, LOCKS, end_leftovers
from toolcrib.activities.possession import DeviceRefused, Possession, Possessions
from toolcrib.activities.progress import THROTTLE, ProgressReporter
from toolcrib.activities.renewal import LeaseLost, Renewal
from toolcrib.activities.reporting import TIMEOUT, deliver
from toolcrib.activities.runners.aside import StillRunning
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.errors import ClaimRefused, ErrorBody
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import LeaseOrder, Progress, Report, ReportOutcome
from toolcrib.workflows.contract import RUN_LEASE, TASK_PROGRESS

SECRETS: Final = ("TEMPORAL_API_KEY", "TEMPORAL_TLS_CLIENT_KEY_DATA", "TEMPORAL_TLS_CLIENT_KEY_PATH")
"""What the worker needs to reach the server is not for the work."""
REFUSAL_PAUSE: Final = 1.0
"""Seconds until a lease that does not get its device is given back: the pool may assign the same device at once."""

_log = structlog.get_logger(__name__)


class LeaseRuns:
    """Runs the leases of one host; what they need of it is given once, at its start."""

    def __init__(
        self,
        *,
        client: Client,
        key: HostKeyPair,
        machine: str,
        devices: Mapping[str, DeviceSpec],
        drivers: Mapping[str, DeviceCare],
        dispatcher: TaskDispatcher,
        guard: Guard,
        possessions: Possessions,
        folders: LeaseFolders,
        throttle: float = THROTTLE,
    ) -> None:
        self.incarnation = Incarnation()
        self.arrivals = Arrivals()
        self._client = client
        self._key = key
        self._machine = machine
        self._devices = devices
        self._drivers = drivers
        self._dispatcher = dispatcher
        self._guard = guard
        self._possessions = possessions
        self._folders = folders
        self._throttle = throttle

    @activity.defn(name=RUN_LEASE)
    async def run_lease(self, order: LeaseOrder) -> Report:
        """Run one lease, and report how it went in a call of its own, since the SDK's does not tell if it arrived."""
        handle = activity.client().get_async_activity_handle(task_token=activity.info().task_token)
        lease = order.lease
        self.arrivals.note(lease)
        proof = LeaseProof(self._key, lease, self._machine)
        possession = self._possessions.of(lease)
        renewal = Renewal(lease.ttl, possession.extend)
        try:
            report = await renewal.during(self.arrivals.during(lease, self._serve(order, renewal, possession, proof)))
        except LeaseLost as lost:
            _log.warning("lease lost; its work was ended", lease=lease.id, reason=lost.message)
            report = _report(lease, ReportOutcome.STOPPED, lost.message, possession.dirty)
        except (DriverFailed, InfrastructureFailed, GuardLost, NotKilled, OSError) as fault:
            _log.error("lease abandoned", lease=lease.id, reason=str(fault))
            report = _abandoned(lease, fault)
        except asyncio.CancelledError:
            report = _stopped(lease, possession.dirty)
        await asyncio.shield(deliver(self._client, handle, lease, proof.sign(report)))
        activity.raise_complete_async()

    async def _serve(self, order: LeaseOrder, renewal: Renewal, possession: Possession, proof: LeaseProof) -> Report:
        lease = order.lease
        device = self._devices.get(lease.device_id)
        if device is None:
            return _report(lease, ReportOutcome.RETURNED, f"host {lease.host_id} has no device {lease.device_id}")
        if self.arrivals.closed:
            return _report(lease, ReportOutcome.RETURNED, "its host is shutting down")
        physical_id = await self._drivers[device.driver].physical_id(device, lease.host_id)
        try:
            async with possession.of(physical_id):
                possession.extend(renewal.deadline)
                return await self._run(order, device, renewal, possession, proof)
        except DeviceRefused as refusal:
            _log.warning("lease not served", lease=lease.id, reason=refusal.message)
            await asyncio.sleep(REFUSAL_PAUSE)
            return _report(lease, ReportOutcome.RETURNED, refusal.message)

    async def _run(
        self, order: LeaseOrder, device: DeviceSpec, renewal: Renewal, possession: Possession, proof: LeaseProof
    ) -> Report:
        lease = order.lease
        try:
            request = proof.claim(await self.incarnation.known())
            assignment = await claim(self._client, lease.task_id, request, lease.ttl)
        except ClaimRefused as refusal:
            _log.warning("claim refused", lease=lease.id, code=refusal.code, reason=refusal.message)
            return _report(lease, ReportOutcome.RETURNED, refusal.message)
        await renewal.renew()
        reporter = ProgressReporter(
            lease.id, lambda report: self._tell_progress(lease.task_id, report), throttle=self._throttle
        )
        renewal.news = lambda: reporter.newest
        context = self._context(order, device, possession.users, reporter)
        context.lost = lambda: renewal.lost
        driver = self._drivers[device.driver]
        try:
            await driver.prepare(device, context)
            context.deadline = time.time() + order.timeout
            report = await self._dispatcher.dispatch(assignment, context, order.timeout)
            await context.reporter.flush()
            if report.outcome is ReportOutcome.FAILED and boottime() > renewal.deadline:
                raise LeaseLost("the lease could not be renewed in time")  # then it was the guard that ended the work
        finally:
            await self._guard.end(lease.id)  # what its runner has forgotten
            await self._leave(driver, device, context, possession)
        _log.info("lease served", lease=lease.id, device=lease.device_id, outcome=report.outcome.value)
        return replace(report, dirty=possession.dirty)

    async def _leave(
        self, driver: DeviceCare, device: DeviceSpec, context: LeaseContext, possession: Possession
    ) -> None:
        """Have the device cleaned, later if a runner or driver does not stop, and note why it is not clean."""

        async def clean() -> None:
            possession.is_cleaned_within(driver.limits.clean)
            try:
                left = await _strays_ended(context)
                possession.dirty = await driver.clean(device, context) or left
            finally:
                self._folders.tidy(context.lease)

        if possession.busy:
            possession.cleanup, possession.dirty = clean, "its runner or driver does not stop"
            return
        possession.dirty = "its clean-up was cut off"
        await _to_its_end(clean())

    def _context(
        self, order: LeaseOrder, device: DeviceSpec, users: list[Future[Any]], reporter: ProgressReporter
    ) -> LeaseContext:
        lease = order.lease
        files = self._folders.make(lease)
        environment = {name: value for name, value in os.environ.items() if name not in SECRETS} | {
            "TOOLCRIB_TASK_ID": lease.task_id,
            "TOOLCRIB_LEASE_ID": lease.id,
            "TOOLCRIB_FENCING": str(lease.fencing),
            "TOOLCRIB_ATTEMPT": str(lease.attempt),
            "TOOLCRIB_DEVICE_ID": lease.device_id,
            "TOOLCRIB_HOST_ID": lease.host_id,
            "TOOLCRIB_ARTIFACTS": str(files.artifacts),
            LOCKS: str(self._possessions.folder),
        }
        return LeaseContext(
            lease=lease,
            device=device,
            guard=self._guard,
            reporter=reporter,
            folder=files.work,
            artifacts=files.artifacts,
            log=files.log,
            deadline=time.time() + order.timeout,
            environment=environment,
            users=users,
        )

    async def _tell_progress(self, task_id: str, report: Progress) -> None:
        task = self._client.get_workflow_handle(task_id)
        await task.signal(TASK_PROGRESS, report, rpc_timeout=TIMEOUT)


async def _strays_ended(context: LeaseContext) -> str | None:
    """End what code in the worker itself has started beside the guard, and return why that was not possible."""
    if not context.users:
        return None
    try:
        killed = await end_leftovers({LEASE: context.lease.id})
    except NotKilled as error:
        return error.message
    if killed:
        _log.warning("ended processes that a runner has left", lease=context.lease.id, processes=list(killed))
    return None


async def _to_its_end(cleaning: Coroutine[Any, Any, None]) -> None:
    """Await a clean-up, also if its lease is cancelled meanwhile; but if the worker stops, cut it off."""
    task, cancelled = asyncio.ensure_future(cleaning), False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
            if _worker_stops():
                task.cancel()
    if cancelled:
        raise asyncio.CancelledError
    task.result()


def _report(lease: Lease, outcome: ReportOutcome, reason: str, dirty: str | None = None) -> Report:
    """Return how a lease ended of which there is no verdict."""
    return Report(lease_id=lease.id, outcome=outcome, error=ErrorBody(code=outcome.value, message=reason), dirty=dirty)


def _stopped(lease: Lease, dirty: str | None) -> Report:
    if _worker_stops():
        return _report(lease, ReportOutcome.RETURNED, "its host is shutting down", dirty)
    return _report(lease, ReportOutcome.STOPPED, "it was cancelled", dirty)


def _abandoned(lease: Lease, fault: Exception) -> Report:
    if isinstance(fault, StillRunning) and _worker_stops():
        return _stopped(lease, None)  # the end of the process ends it
    what = "infrastructure" if isinstance(fault, InfrastructureFailed) else "host"
    return _report(lease, ReportOutcome.ABANDONED, f"the {what} failed: {fault}")


def _worker_stops() -> bool:
    details = activity.cancellation_details()
    return details is not None and details.worker_shutdown and not details.cancel_requested

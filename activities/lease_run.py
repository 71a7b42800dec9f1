"""The activity that runs one lease on its host: lock, claim, prepare, run, clean up, report."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import structlog
from temporalio import activity
from temporalio.client import AsyncActivityHandle, Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.activities.arrivals import Arrivals
from toolcrib.activities.claiming import claim
from toolcrib.activities.context import LeaseContext
from toolcrib.activities.dispatcher import TaskDispatcher
from toolcrib.activities.drivers import Driver
from toolcrib.activities.guard import Guard, boottime
from toolcrib.activities.lease_folders import LeaseFolders
from toolcrib.activities.leftovers import LOCKS
from toolcrib.activities.possession import DeviceRefused, Possession, Possessions
from toolcrib.activities.progress import ProgressReporter
from toolcrib.activities.renewal import LeaseLost, Renewal
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.errors import ClaimRefused, ErrorBody
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import LeaseOrder, Progress, Report, ReportOutcome
from toolcrib.workflows.contract import RUN_LEASE, TASK_PROGRESS

SECRETS: Final = ("TEMPORAL_API_KEY", "TEMPORAL_TLS_CLIENT_KEY_DATA", "TEMPORAL_TLS_CLIENT_KEY_PATH")
"""What the worker needs to reach the server is not for the work."""
REPORT_TIMEOUT: Final = timedelta(seconds=5)
REFUSAL_PAUSE: Final = 1.0
"""Seconds until a lease that does not get its device is given back: the pool may assign the same device at once."""

_log = structlog.get_logger(__name__)


class LeaseRuns:
    """Runs the leases of one host; what they need of it is given once, at its start."""

    def __init__(
        self,
        *,
        client: Client,
        devices: Mapping[str, DeviceSpec],
        drivers: Mapping[str, Driver],
        dispatcher: TaskDispatcher,
        guard: Guard,
        possessions: Possessions,
        folders: LeaseFolders,
    ) -> None:
        self.incarnation = 0
        """Of this worker; set when it has registered with its pool."""
        self.arrivals = Arrivals()
        self._client = client
        self._devices = devices
        self._drivers = drivers
        self._dispatcher = dispatcher
        self._guard = guard
        self._possessions = possessions
        self._folders = folders

    @activity.defn(name=RUN_LEASE)
    async def run_lease(self, order: LeaseOrder) -> Report:
        """Run one lease, and report how it went in a call of its own, since the SDK's does not tell if it arrived."""
        handle = activity.client().get_async_activity_handle(task_token=activity.info().task_token)
        lease = order.lease
        self.arrivals.note(lease)
        possession = self._possessions.of(lease)
        renewal = Renewal(lease.ttl, possession.extend)
        try:
            report = await renewal.during(self._serve(order, renewal, possession))
        except LeaseLost as lost:
            _log.warning("lease lost; its work was ended", lease=lease.id, reason=lost.message)
            if activity.is_cancelled():
                raise asyncio.CancelledError from None
            raise ApplicationError(
                lost.message, type=lost.code, non_retryable=True, category=ApplicationErrorCategory.BENIGN
            ) from None
        except asyncio.CancelledError:
            if not _worker_stops():
                raise
            report = _returned(lease, "its host is shutting down")
        await asyncio.shield(_deliver(handle, report))
        activity.raise_complete_async()

    async def _serve(self, order: LeaseOrder, renewal: Renewal, possession: Possession) -> Report:
        lease = order.lease
        device = self._devices.get(lease.device_id)
        if device is None:
            return _returned(lease, f"host {lease.host_id} has no device {lease.device_id}")
        if self.arrivals.closed:
            return _returned(lease, "its host is shutting down")
        physical_id = self._drivers[device.driver].physical_id(device, lease.host_id)
        try:
            async with possession.of(physical_id):
                possession.extend(renewal.deadline)
                return await self._run(order, device, renewal)
        except DeviceRefused as refusal:
            _log.warning("lease not served", lease=lease.id, reason=refusal.message)
            await asyncio.sleep(REFUSAL_PAUSE)
            return _returned(lease, refusal.message)

    async def _run(self, order: LeaseOrder, device: DeviceSpec, renewal: Renewal) -> Report:
        lease = order.lease
        try:
            assignment = await claim(self._client, lease, self.incarnation, lease.ttl)
        except ClaimRefused as refusal:
            _log.warning("claim refused", lease=lease.id, code=refusal.code, reason=refusal.message)
            return _returned(lease, refusal.message)
        await renewal.renew()
        context = self._context(order, device)
        driver = self._drivers[device.driver]
        try:
            await driver.prepare(device, context)
            report = await self._dispatcher.dispatch(assignment, context, order.timeout)
            await context.reporter.flush()
            if report.outcome is ReportOutcome.FAILED and boottime() > renewal.deadline:
                raise LeaseLost("the lease could not be renewed in time")  # then it was the guard that ended the work
        finally:
            try:
                await self._guard.end(lease.id)  # what its runner has forgotten
                await driver.clean(device, context)
            finally:
                self._folders.tidy(lease)
        _log.info("lease served", lease=lease.id, device=lease.device_id, outcome=report.outcome.value)
        return report

    def _context(self, order: LeaseOrder, device: DeviceSpec) -> LeaseContext:
        lease = order.lease
        folder, artifacts = self._folders.make(lease)
        environment = {name: value for name, value in os.environ.items() if name not in SECRETS} | {
            "TOOLCRIB_TASK_ID": lease.task_id,
            "TOOLCRIB_LEASE_ID": lease.id,
            "TOOLCRIB_FENCING": str(lease.fencing),
            "TOOLCRIB_ATTEMPT": str(lease.attempt),
            "TOOLCRIB_DEVICE_ID": lease.device_id,
            "TOOLCRIB_HOST_ID": lease.host_id,
            "TOOLCRIB_ARTIFACTS": str(artifacts),
            LOCKS: str(self._possessions.folder),
        }
        return LeaseContext(
            lease=lease,
            device=device,
            guard=self._guard,
            reporter=ProgressReporter(lease.id, lambda report: self._tell_progress(lease.task_id, report)),
            folder=folder,
            artifacts=artifacts,
            deadline=time.time() + order.timeout,
            environment=environment,
        )

    async def _tell_progress(self, task_id: str, report: Progress) -> None:
        task = self._client.get_workflow_handle(task_id)
        await task.signal(TASK_PROGRESS, report, rpc_timeout=REPORT_TIMEOUT)


async def _deliver(handle: AsyncActivityHandle, report: Report) -> None:
    """Bring the report to the server; one that comes too late changes nothing."""
    for pause in (0.1, 0.5, 1.0, 2.0, 5.0, 0.0):
        try:
            await handle.complete(report, rpc_timeout=REPORT_TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                _log.warning("report refused: the lease is over", lease=report.lease_id)
                return
            await asyncio.sleep(pause)
        else:
            return
    _log.error("report not delivered; the lease will expire", lease=report.lease_id)


def _returned(lease: Lease, reason: str) -> Report:
    error = ErrorBody(code="returned", message=reason)
    return Report(lease_id=lease.id, outcome=ReportOutcome.RETURNED, error=error)


def _worker_stops() -> bool:
    details = activity.cancellation_details()
    return details is not None and details.worker_shutdown and not details.cancel_requested

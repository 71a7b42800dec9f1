"""The activity that runs one lease on its host: lock, claim, prepare, run, clean up, report."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
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
from toolcrib.activities.drivers import Driver
from toolcrib.activities.guard import Guard, GuardLost, NotKilled, boottime
from toolcrib.activities.host_keys import HostKeyPair
from toolcrib.activities.incarnation import Incarnation
from toolcrib.activities.lease_folders import LeaseFolders
from toolcrib.activities.lease_proof import LeaseProof
from toolcrib.activities.leftovers import LOCKS
from toolcrib.activities.possession import DeviceRefused, Possession, Possessions
from toolcrib.activities.progress import THROTTLE, ProgressReporter
from toolcrib.activities.renewal import LeaseLost, Renewal
from toolcrib.activities.reporting import TIMEOUT, deliver
from toolcrib.activities.runners.aside import StillRunning
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.errors import ClaimRefused, ErrorBody, ToolcribError
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import LeaseOrder, Progress, Report, ReportOutcome
from toolcrib.workflows.contract import RUN_LEASE, TASK_PROGRESS

SECRETS: Final = ("TEMPORAL_API_KEY", "TEMPORAL_TLS_CLIENT_KEY_DATA", "TEMPORAL_TLS_CLIENT_KEY_PATH")
"""What the worker needs to reach the server is not for the work."""
REFUSAL_PAUSE: Final = 1.0
"""Seconds until a lease that does not get its device is given back: the pool may assign the same device at once."""

CLEAN_WITHIN: Final = 60.0
"""Seconds in which a driver has a device clean; one that is not is not given to others as if nothing were wrong."""

_log = structlog.get_logger(__name__)


class DriverFailed(ToolcribError):
    """A driver could not get a device ready."""

    code = "driver_failed"


class LeaseRuns:
    """Runs the leases of one host; what they need of it is given once, at its start."""

    def __init__(
        self,
        *,
        client: Client,
        key: HostKeyPair,
        machine: str,
        devices: Mapping[str, DeviceSpec],
        drivers: Mapping[str, Driver],
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
            report = _report(lease, ReportOutcome.STOPPED, lost.message)
        except (DriverFailed, InfrastructureFailed, GuardLost, NotKilled, OSError) as fault:
            _log.error("lease abandoned", lease=lease.id, reason=str(fault))
            report = _abandoned(lease, fault)
        except asyncio.CancelledError:
            report = _stopped(lease)
        await asyncio.shield(deliver(self._client, handle, lease, proof.sign(report)))
        activity.raise_complete_async()

    async def _serve(self, order: LeaseOrder, renewal: Renewal, possession: Possession, proof: LeaseProof) -> Report:
        lease = order.lease
        device = self._devices.get(lease.device_id)
        if device is None:
            return _report(lease, ReportOutcome.RETURNED, f"host {lease.host_id} has no device {lease.device_id}")
        if self.arrivals.closed:
            return _report(lease, ReportOutcome.RETURNED, "its host is shutting down")
        physical_id = self._drivers[device.driver].physical_id(device, lease.host_id)
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
            await _prepare(driver, device, context)
            report = await self._dispatcher.dispatch(assignment, context, order.timeout)
            await context.reporter.flush()
            if report.outcome is ReportOutcome.FAILED and boottime() > renewal.deadline:
                raise LeaseLost("the lease could not be renewed in time")  # then it was the guard that ended the work
        finally:
            await self._guard.end(lease.id)  # what its runner has forgotten
            dirty = await self._leave(driver, device, context, possession)
        _log.info("lease served", lease=lease.id, device=lease.device_id, outcome=report.outcome.value)
        return replace(report, dirty=dirty)

    async def _leave(
        self, driver: Driver, device: DeviceSpec, context: LeaseContext, possession: Possession
    ) -> str | None:
        """Have the device cleaned, later if a runner does not stop, and return why it is not clean."""

        async def clean() -> str | None:
            try:
                return await _clean(driver, device, context)
            finally:
                self._folders.tidy(context.lease)

        if possession.busy:
            possession.cleanup = clean
            return "its runner does not stop"
        return await clean()

    def _context(
        self, order: LeaseOrder, device: DeviceSpec, users: list[Future[Any]], reporter: ProgressReporter
    ) -> LeaseContext:
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
            reporter=reporter,
            folder=folder,
            artifacts=artifacts,
            deadline=time.time() + order.timeout,
            environment=environment,
            users=users,
        )

    async def _tell_progress(self, task_id: str, report: Progress) -> None:
        task = self._client.get_workflow_handle(task_id)
        await task.signal(TASK_PROGRESS, report, rpc_timeout=TIMEOUT)


async def _prepare(driver: Driver, device: DeviceSpec, context: LeaseContext) -> None:
    try:
        await driver.prepare(device, context)
    except Exception as error:
        raise DriverFailed(f"driver {device.driver} could not prepare {device.id}: {_words(error)}") from error


async def _clean(driver: Driver, device: DeviceSpec, context: LeaseContext) -> str | None:
    """Have the driver clean the device, and return why it did not."""
    try:
        async with asyncio.timeout(CLEAN_WITHIN):
            await driver.clean(device, context)
    except Exception as error:  # noqa: BLE001 - whatever a driver raises, the work's verdict stands
        _log.exception("device not cleaned", lease=context.lease.id, device=device.id)
        return f"driver {device.driver} could not clean {device.id}: {_words(error)}"
    return None


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _report(lease: Lease, outcome: ReportOutcome, reason: str) -> Report:
    """Return how a lease ended of which there is no verdict."""
    return Report(lease_id=lease.id, outcome=outcome, error=ErrorBody(code=outcome.value, message=reason))


def _stopped(lease: Lease) -> Report:
    if _worker_stops():
        return _report(lease, ReportOutcome.RETURNED, "its host is shutting down")
    return _report(lease, ReportOutcome.STOPPED, "it was cancelled")


def _abandoned(lease: Lease, fault: Exception) -> Report:
    if isinstance(fault, StillRunning) and _worker_stops():
        return _stopped(lease)  # the end of the process ends it
    what = "infrastructure" if isinstance(fault, InfrastructureFailed) else "host"
    return _report(lease, ReportOutcome.ABANDONED, f"the {what} failed: {fault}")


def _worker_stops() -> bool:
    details = activity.cancellation_details()
    return details is not None and details.worker_shutdown and not details.cancel_requested

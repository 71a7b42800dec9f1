"""One host's worker, as its pool knows it: it registers, shows that it lives, and says when it leaves."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import structlog
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.exceptions import TemporalError
from temporalio.service import RPCError

from toolcrib.activities.brought import Brought
from toolcrib.activities.dispatcher import EntryPoints, TaskDispatcher
from toolcrib.activities.drivers.care import DeviceCare
from toolcrib.activities.guard import Guard, GuardLost
from toolcrib.activities.host_keys import HostKeyPair
from toolcrib.activities.lease_folders import LeaseFolders
from toolcrib.activities.lease_run import LeaseRuns
from toolcrib.activities.machine import machine_id
from toolcrib.activities.pool_link import PoolLinks
from toolcrib.activities.possession import Possessions
from toolcrib.activities.presence import HostPresence
from toolcrib.activities.retrying import is_unanswered, retried
from toolcrib.activities.runners import WorkflowRunner, references_of
from toolcrib.activities.runners.under_lease import HostedRunner, HostWork
from toolcrib.scheduling.errors import HostSuperseded, NotEnrolled, ToolcribError, UnknownPool
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import HostLeaves, HostSnapshot, Presence, Registration
from toolcrib.scheduling.names import HOST, TASKS_QUEUE, host_workflow_id
from toolcrib.worker.host_file import HostFile
from toolcrib.workflows.contract import HOST_HELLO

PICK_UP: Final = 30.0
PAUSE: Final = 1.0
LOOK_EVERY: Final = 15.0
"""Seconds between two looks whether the pool still knows the host; each is a query, which leaves no trace."""
PATIENCE: Final = 5.0
"""Seconds that a worker takes to leave, before its work may finish."""

_POOL: Final = SearchAttributeKey.for_keyword("ToolcribPool")
_log = structlog.get_logger(__name__)


class HostAgent:
    """One host's worker: its guard, its runners and its place in the pool."""

    def __init__(
        self,
        client: Client,
        host: HostFile,
        key: HostKeyPair,
        drivers: Mapping[str, DeviceCare],
        guard: Guard,
        possessions: Possessions,
        folders: LeaseFolders,
        work: HostWork,
        works: WorkflowRunner | None = None,
    ) -> None:
        self.registered = asyncio.Event()
        self.superseded = asyncio.Event()
        """Set when a newer worker has taken this one's place."""
        self.broken = asyncio.Event()
        """Set when this worker no longer tries to be registered, which is a fault in it."""
        self._bug: BaseException | None = None
        self.guard = guard
        machine = machine_id(possessions.folder)
        runners = host.runners.load()
        by_driver_type = {kind: names.load() for kind, names in host.runners.by_driver_type.items()}
        self.brought = _begun([runners, *by_driver_type.values()], work)
        """What the worker of the work queue needs for the workflow runners."""
        self.runs = LeaseRuns(
            client=client,
            key=key,
            machine=machine,
            devices={device.id: device for device in host.devices},
            drivers=drivers,
            dispatcher=TaskDispatcher(
                runners.goals,
                runners.workflows,
                works,
                by_driver_type=by_driver_type,
            ),
            guard=guard,
            possessions=possessions,
            folders=folders,
            throttle=host.progress_throttle,
        )
        self.presence = HostPresence(self.runs.incarnation)
        self._client = client
        self._host = host
        self._key = key
        self._link = PoolLinks(client).to(host.pool)
        self._served = possessions.served
        self._waits_for: str | None = None
        self._shown = 0
        """The serial of the registration under which this worker shows that it lives."""
        self._snapshot = HostSnapshot(
            host_id=host.id,
            instance=uuid.uuid4().hex,
            devices=tuple(host.devices),
            machine=machine,
            workflows=_said(host, runners, by_driver_type),
        )

    @property
    def failures(self) -> tuple[asyncio.Event, ...]:
        """What is set when this worker cannot go on."""
        return self.superseded, self.guard.lost, self.broken

    @property
    def fault(self) -> ToolcribError | None:
        """Why this worker cannot go on; None if it can."""
        if self.superseded.is_set():
            return HostSuperseded(f"another worker of host {self._host.id} has taken over from this one")
        if self.guard.lost.is_set():
            return GuardLost("the guard process died, and this host's work with it", hint="Start the worker again.")
        if self._bug is not None:
            return ToolcribError(
                f"host {self._host.id} can no longer register: {type(self._bug).__name__}: {self._bug}",
                hint="Start the worker again, and report this as a bug.",
            )
        return None

    def registering_ended(self, registering: asyncio.Task[None]) -> None:
        """Take note of the end of `stay_registered`."""
        if not registering.cancelled() and (bug := registering.exception()) is not None:
            self._bug = bug
            self.broken.set()

    async def stay_registered(self) -> None:
        """Register with the pool, and again when the host's presence is not counted on, or the pool has to be told.

        It ends when another worker has registered for the host since: the newer one serves it.
        """
        while not self.superseded.is_set():
            try:
                await self._register()
                if self.superseded.is_set():
                    return
                await self.presence.until(shown=True, timeout=PICK_UP)
                await self._until_absent()
            except TimeoutError:
                _log.warning("presence was not taken up; registering again", host=self._host.id)
            except RPCError as error:
                _log.warning("presence cannot be shown; registering again", host=self._host.id, reason=error.message)
            await asyncio.sleep(PAUSE)

    async def leave(self) -> None:
        """Have the pool grant nothing more here, and give back what it has granted and nobody has begun.

        A lease that is on its way from the server is waited for, but only for a moment: without a worker to return it,
        it would run out and count as an attempt.
        """
        if not self.registered.is_set():
            return
        try:
            async with asyncio.timeout(PATIENCE):
                leases = await self._say_goodbye()
                self.runs.arrivals.closed = True
                await self.runs.arrivals.until(leases)
        except TimeoutError:
            _log.warning("leaving without all leases that are on their way", host=self._host.id)
        except (ToolcribError, TemporalError) as error:
            _log.warning("leaving without a word to the pool", host=self._host.id, reason=str(error))

    async def _say_goodbye(self) -> list[Lease]:
        message = HostLeaves(host_id=self._host.id, incarnation=self.runs.incarnation.number)
        return await retried(lambda: self._link.leave(message), is_unanswered, patience=None, longest_pause=1.0)

    async def _until_absent(self) -> None:
        """Wait until the host's presence is no longer shown; look now and then whether the pool wants to be told."""
        while not self.superseded.is_set():
            try:
                await self.presence.until(shown=False, timeout=LOOK_EVERY)
            except TimeoutError:
                await self._tell_if_wanted()
            else:
                return

    async def _tell_if_wanted(self) -> None:
        """Register again with a pool that does not know this host, or waits for work here to end."""
        try:
            known = await self._link.standing(self._host.id)
        except UnknownPool as error:
            _log.warning(
                "the pool is gone; the host registers when there is one", host=self._host.id, reason=str(error)
            )
        except TemporalError:
            return
        else:
            if known.instance == self._snapshot.instance and not known.tell:
                return
        before, found = self.runs.incarnation.number, await self._tell_pool()
        if found is not None and found.incarnation != before:
            await self._show_presence(found)

    async def _tell_pool(self) -> Registration | None:
        """Tell the pool of this host and what it works on; None if another worker has taken over from this one."""
        found = await retried(self._ask_in, self._may_pass, patience=None, longest_pause=5.0)
        if found is None:
            self.superseded.set()
            return None
        self.runs.incarnation.is_now(found.incarnation)
        _log.info("host registered", host=self._host.id, pool=self._host.pool, incarnation=found.incarnation)
        return found

    async def _register(self) -> None:
        self._shown = 0
        if (found := await self._tell_pool()) is not None:
            await self._show_presence(found)
            self.registered.set()

    async def _show_presence(self, found: Registration) -> None:
        self._shown = self._snapshot.serial
        presence = Presence(
            host_id=self._host.id,
            pool=self._host.pool,
            incarnation=found.incarnation,
            ttl=found.ttl,
            registration=self._shown,
        )
        await self._client.start_workflow(
            HOST,
            presence,
            id=host_workflow_id(self._host.id),
            task_queue=TASKS_QUEUE,
            start_signal=HOST_HELLO,
            start_signal_args=[presence],
            search_attributes=TypedSearchAttributes([SearchAttributePair(_POOL, self._host.pool)]),
            static_summary=f"Host {self._host.id} of pool {self._host.pool}",
        )

    async def _ask_in(self) -> Registration | None:
        """Register once; None if a newer worker has done so since this one did."""
        known, ours = await self._link.standing(self._host.id), self.runs.incarnation.number
        if ours and known.incarnation > ours:
            return None
        if known.public_key is None:
            raise NotEnrolled.named(self._host.id, self._host.pool, self._key.public)
        if known.public_key != self._key.public:
            raise NotEnrolled.with_another_key(self._host.id, self._host.pool, self._key.public)
        # First what was served, then what is being worked on: the other way round, a lease that arrives in between
        # would be served and not worked on, that is to say over.
        served = await asyncio.to_thread(self._served.highest, [device.id for device in self._host.devices])
        self._snapshot = replace(
            self._snapshot,
            serial=max(known.serial, self._snapshot.serial) + 1,
            incarnation=ours,
            presence=self._shown,
            leases=tuple(self.runs.arrivals.open.values()),
            served=served,
        )
        return await self._link.register(self._key.signed_snapshot(self._snapshot, self._host.pool))

    def _may_pass(self, error: BaseException) -> bool:
        """Return whether to register again after an error; what has to be done about it is said once."""
        if not isinstance(error, ToolcribError):
            return is_unanswered(error)
        if error.message != self._waits_for:
            _log.warning("not registered yet", host=self._host.id, reason=error.message, hint=error.hint)
            self._waits_for = error.message
        return True


def _begun(entries: Sequence[EntryPoints], work: HostWork) -> Brought:
    """Let those runners begin that run workflows under leases, and return what they bring."""
    brought = Brought()
    for runner in [entry.workflows for entry in entries]:
        if isinstance(runner, HostedRunner):
            brought += runner.begin(work)
    return brought


def _said(host: HostFile, runners: EntryPoints, special: Mapping[str, EntryPoints]) -> dict[str, tuple[str, ...]]:
    """Return which workflows are run on devices of each driver type, where the runners there say so."""
    said: dict[str, tuple[str, ...]] = {}
    for driver_type in dict.fromkeys(device.driver_type for device in host.devices):
        runner = special.get(driver_type, runners).workflows
        if runner is None:
            said[driver_type] = ()
        elif (references := references_of(runner)) is not None:
            said[driver_type] = references
    return said

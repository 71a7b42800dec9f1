"""DevicePool: the device-reservation entity of one pool, which makes every assignment."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from temporalio import workflow
from temporalio.exceptions import ActivityError

from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.enrollment import check_enrollment, enroll, enrolled, keys_of, standing_of
from toolcrib.scheduling.errors import ToolcribError
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import (
    Admission,
    AskedAfter,
    DeviceOrder,
    HostKey,
    HostLeaves,
    HostOrder,
    HostRestarted,
    HostSilent,
    HostSnapshot,
    HostStanding,
    QueueEntry,
    Registration,
    Settlement,
)
from toolcrib.scheduling.names import DEVICE_POOL, LINK_QUEUE, pool_workflow_id
from toolcrib.scheduling.pool import PoolState, dump_state, load_state
from toolcrib.scheduling.pool_view import device_views, host_views, pool_details, pool_view, reasons_for
from toolcrib.scheduling.registration import check_registration
from toolcrib.scheduling.repair import rebuilt
from toolcrib.scheduling.scheduler import TaskScheduler
from toolcrib.scheduling.strategies import STRATEGIES
from toolcrib.scheduling.validation import validated
from toolcrib.scheduling.views import DeviceView, HostView, PendingReason, PoolView
from toolcrib.workflows.contract import (
    ASK_AFTER,
    HOST_KEYS,
    MAX_HISTORY_EVENTS,
    POOL_ADMIT,
    POOL_ASSIGN,
    POOL_CONFIGURE,
    POOL_DEVICE,
    POOL_ENROLL,
    POOL_HOST,
    POOL_LEAVE,
    POOL_MEMBERS,
    POOL_REASONS,
    POOL_REGISTER,
    POOL_SETTLE,
    POOL_SILENCE,
    POOL_STANDING,
    POOL_STRATEGIES,
    POOL_VIEW,
    SETTINGS,
)
from toolcrib.workflows.delivery import Delivery, tell_holders
from toolcrib.workflows.failures import to_failure, told_as_failures
from toolcrib.workflows.resets import ResetWatch

MAX_SIGNALS: Final = 8_000
"""Of the 10,000 signals that one run may get."""
CHECK_PAUSE: Final = 10.0
"""Seconds between two looks for overdue tasks, at least."""
WAKE_PAUSE: Final = 1.0
"""Seconds between two looks for devices that have rested, at least: those that failed together wake together."""


@workflow.defn(name=DEVICE_POOL)
class DevicePool:
    """Holds queue and devices of one pool; every decision is made by `TaskScheduler`, in one workflow task.

    `config` is a JSON object with the fields of `PoolConfig`; `carried` is the state of the run before this one, and
    `max_events` the length of history after which it goes on in a new run. If there was a
    pool of that name before, of which nothing was carried over, `host_keys` are the public keys of its hosts.
    """

    @workflow.init
    def __init__(
        self,
        config: Any = None,
        carried: bytes | None = None,
        max_events: int = MAX_HISTORY_EVENTS,
        host_keys: dict[str, str] | None = None,
    ) -> None:
        name = workflow.info().workflow_id.removeprefix(pool_workflow_id(""))
        self._fault: ToolcribError | None = None
        try:
            state = load_state(carried) if carried else PoolState(name=name, config=validated(PoolConfig, config or {}))
            STRATEGIES.get(state.config.strategy)
            if host_keys is not None:
                state = rebuilt(enrolled(state, host_keys, workflow.time()), workflow.time())
        except ToolcribError as fault:
            self._fault, state = fault, PoolState(name=name, config=PoolConfig())
        self._scheduler = TaskScheduler(state)
        self._resets = ResetWatch()
        self._max_events = max_events
        self._signals = 0
        self._delivery = Delivery(lambda: self._scheduler)
        self._changed()

    @workflow.run
    async def run(
        self,
        config: Any = None,
        carried: bytes | None = None,
        max_events: int = MAX_HISTORY_EVENTS,
        host_keys: dict[str, str] | None = None,
    ) -> None:
        """Deliver grants, ask after silent tasks and wake rested devices, for ever."""
        if self._fault is not None:
            raise to_failure(self._fault)
        self._checks = asyncio.create_task(self._look_after_things())
        resets = asyncio.create_task(self._heed_resets())
        while not self._run_is_full():
            try:
                await workflow.wait_condition(lambda: bool(self._delivery.fresh) or self._run_is_full())
                if grants := self._delivery.fresh:
                    await self._delivery.deliver(grants)
            except asyncio.CancelledError:
                workflow.logger.warning(
                    "a pool is not cancelled: its tasks would wait for ever; terminate it to end it"
                )
        self._checks.cancel()
        resets.cancel()
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.continue_as_new(args=[None, dump_state(self._scheduler.state), max_events])

    # ---- messages

    @workflow.update(name=POOL_ADMIT)
    def admit(self, entries: list[QueueEntry]) -> list[Admission]:
        """Answer each entry: a place in the queue, a lease, or a refusal."""
        answers = self._scheduler.admit(entries, workflow.time())
        self._changed()
        return answers

    @admit.validator
    def check_admit(self, entries: list[QueueEntry]) -> None:
        """Refuse only when no entry can be admitted; then nothing at all is written."""
        refusals = [self._scheduler.refusal(entry) for entry in entries]
        # One failure answers all of them; where they differ, each is answered by itself.
        if refusals and refusals[0] is not None and all(refusal == refusals[0] for refusal in refusals):
            raise to_failure(refusals[0])

    @workflow.signal(name=POOL_SETTLE)
    def settle(self, messages: list[Settlement]) -> None:
        """Take back what tasks give back."""
        self._signals += 1
        self._scheduler.settle(messages, workflow.time())
        self._changed()

    @workflow.update(name=POOL_REGISTER)
    def register(self, snapshot: HostSnapshot) -> Registration:
        """Take in a host with its devices, and tell the tasks that hold leases of an older worker of it."""
        with told_as_failures():
            registration = self._scheduler.register(snapshot, workflow.time())
        if holders := self._scheduler.holders_before(snapshot.host_id, registration.incarnation):
            news = HostRestarted(
                host_id=snapshot.host_id, incarnation=registration.incarnation, machine=snapshot.machine
            )
            asyncio.create_task(tell_holders(holders, news))  # noqa: RUF006 - the workflow's loop keeps it
        self._changed()
        return registration

    @register.validator
    def check_register(self, snapshot: HostSnapshot) -> None:
        """Refuse, without a trace in the history, what is not the host's own word, or cannot be kept."""
        with told_as_failures():
            check_registration(self._scheduler.records, snapshot)

    @workflow.query(name=POOL_STANDING)
    def standing(self, host_id: str) -> HostStanding:
        """Return what is known of a host that wants to register."""
        return standing_of(self._scheduler.records, host_id)

    @workflow.update(name=POOL_ENROLL)
    def enroll(self, order: HostKey) -> HostView:
        """Keep a host's public key, or forget it, and return how the host is now."""
        with told_as_failures():
            enroll(self._scheduler.records, order, workflow.time())
        self._scheduler.assign(workflow.time())
        workflow.upsert_memo({HOST_KEYS: keys_of(self._scheduler.records)})
        self._changed()
        return next(view for view in host_views(self._scheduler.state) if view.id == order.host_id)

    @enroll.validator
    def check_enroll(self, order: HostKey) -> None:
        """Refuse a key that is malformed, or that would replace another."""
        with told_as_failures():
            check_enrollment(self._scheduler.records, order)

    @workflow.signal(name=POOL_SILENCE)
    def silence(self, message: HostSilent) -> None:
        """Take out a host that no longer heartbeats."""
        self._signals += 1
        self._scheduler.silence(message, workflow.time())
        self._changed()

    @workflow.update(name=POOL_LEAVE)
    def leave(self, message: HostLeaves) -> list[Lease]:
        """Grant nothing more on a host whose worker begins to stop, and return the leases that are out on it."""
        leases = self._scheduler.leave(message, workflow.time())
        self._changed()
        return leases

    @workflow.update(name=POOL_DEVICE)
    def device(self, order: DeviceOrder) -> DeviceView:
        """Let tasks have a device, or not, as its operator wants, and return how it is now."""
        self._carry_out(order)
        return next(view for view in device_views(self._scheduler.state) if view.key == order.key)

    @device.validator
    def check_device(self, order: DeviceOrder) -> None:
        """Refuse a device that is not there, and a quarantine without a reason."""
        self._check_order(order)

    @workflow.update(name=POOL_HOST)
    def host(self, order: HostOrder) -> HostView:
        """Let tasks have a host's devices, or not, as its operator wants, and return how it is now."""
        self._carry_out(order)
        return next(view for view in host_views(self._scheduler.state) if view.id == order.host_id)

    @host.validator
    def check_host(self, order: HostOrder) -> None:
        """Refuse a host that is not there."""
        self._check_order(order)

    @workflow.update(name=POOL_CONFIGURE)
    def configure(self, changes: dict[str, Any]) -> None:
        """Change some settings."""
        self._scheduler.configure(self._scheduler.config.changed(changes), workflow.time())
        config = self._scheduler.config
        workflow.upsert_memo({"strategy": config.strategy, SETTINGS: config.model_dump()})
        self._changed()

    @configure.validator
    def check_configure(self, changes: dict[str, Any]) -> None:
        """Refuse unknown fields, values outside their limits and strategies that nobody registered."""
        with told_as_failures():
            STRATEGIES.get(self._scheduler.config.changed(changes).strategy)

    @workflow.update(name=POOL_ASSIGN)
    def assign(self) -> int:
        """Decide now, and return how many leases were granted."""
        grants = self._scheduler.assign(workflow.time())
        self._changed()
        return len(grants)

    @workflow.query(name=POOL_VIEW)
    def view(self) -> PoolView:
        """Return the pool as people see it."""
        return pool_view(self._scheduler)

    @workflow.query(name=POOL_MEMBERS)
    def members(self) -> list[str]:
        """Return the tasks that wait or hold devices."""
        return self._scheduler.members

    @workflow.query(name=POOL_REASONS)
    def reasons(self, task_ids: list[str]) -> dict[str, PendingReason]:
        """Return why each of these tasks waits."""
        return reasons_for(self._scheduler, task_ids)

    @workflow.query(name=POOL_STRATEGIES)
    def strategies(self) -> list[str]:
        """Return the strategies that the scheduler process knows."""
        return STRATEGIES.names()

    # ---- what needs a look now and then

    async def _look_after_things(self) -> None:
        """Assign when devices have rested, and ask after tasks that fell silent; no timer runs while nothing is on."""
        while True:
            await workflow.wait_condition(lambda: self._scheduler.busy or self._scheduler.next_wake() is not None)
            await self._until_next_look()
            self._scheduler.assign(workflow.time())
            self._changed()
            if (due := self._scheduler.next_check()) is not None and due <= workflow.time():
                await self._ask_after()

    async def _until_next_look(self) -> None:
        """Wait until a task or device is due; a device that begins to rest meanwhile may be due earlier."""
        begun, check = workflow.time(), self._scheduler.next_check()
        pause = 0.0 if self._scheduler.surveys else CHECK_PAUSE
        silent = None if check is None else max(check, begun + pause)

        def due() -> float:
            wake = self._scheduler.next_wake()
            rested = None if wake is None else max(wake, begun + WAKE_PAUSE)
            return min((at for at in (silent, rested) if at is not None), default=begun)

        planned = due()
        with suppress(TimeoutError):
            await workflow.wait_condition(lambda: due() < planned, timeout=max(planned - begun, 0.001))

    async def _ask_after(self) -> None:
        asked_at = workflow.time()
        try:
            found = await workflow.execute_activity(
                ASK_AFTER,
                self._scheduler.name,
                result_type=AskedAfter,
                task_queue=LINK_QUEUE,
                start_to_close_timeout=timedelta(seconds=30),
                schedule_to_close_timeout=timedelta(minutes=2),
            )
        except ActivityError:
            workflow.logger.warning("could not ask after tasks; trying later")
            return
        self._resets.handled(found.run_id)
        for task_id, reason in self._scheduler.asked_after(found, asked_at, workflow.time()).items():
            workflow.logger.warning("took back what a task had", extra={"task": task_id, "reason": reason})
        for task_id in found.strangers:
            workflow.logger.warning("asked a task to come forward that the pool does not know", extra={"task": task_id})
        self._changed()

    async def _heed_resets(self) -> None:
        """Begin as a rebuilt pool when this run was reset: what it knew then may be long over."""
        while True:
            await workflow.wait_condition(self._resets.noticed)
            workflow.logger.warning("the pool was reset; it asks its tasks and hosts for what they have")
            self._forget()
            # What was said to the earlier run after the point of the reset is said again in this workflow task.
            task = workflow.info().get_current_history_length()
            await self._next_workflow_task(task)
            self._forget()

    async def _next_workflow_task(self, task: int) -> None:
        await workflow.wait_condition(lambda: workflow.info().get_current_history_length() != task)

    def _forget(self) -> None:
        self._scheduler = TaskScheduler(rebuilt(self._scheduler.records, workflow.time()))
        self._checks.cancel()
        self._checks = asyncio.create_task(self._look_after_things())
        self._changed()

    # ---- this run

    def _run_is_full(self) -> bool:
        info = workflow.info()
        return (
            info.is_continue_as_new_suggested()
            or info.get_current_history_length() >= self._max_events
            or self._signals >= MAX_SIGNALS
        )

    def _check_order(self, order: DeviceOrder | HostOrder) -> None:
        with told_as_failures():
            self._scheduler.check_order(order)

    def _carry_out(self, order: DeviceOrder | HostOrder) -> None:
        with told_as_failures():
            self._scheduler.order(order, workflow.time())
        self._changed()

    def _changed(self) -> None:
        workflow.set_current_details(pool_details(self._scheduler))

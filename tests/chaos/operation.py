"""What people do during a chaos run: submit tasks, look after devices, and at the end try each of them."""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from math import inf
from typing import Final, TypeVar

from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError

from chaos import work
from chaos.faults import Injector
from chaos.plan import Job, Plan
from chaos.site import Site
from toolcrib.client import TaskRequest
from toolcrib.scheduling.errors import NoConnection, ToolcribError

LOOK_PAUSE: Final = 1.0
"""Seconds between two looks at devices and tasks."""
PROBE_SECONDS: Final = 0.1
CALL: Final = timedelta(seconds=5)
PATIENCE: Final = 120.0
"""Seconds in which a submission has to get through."""

Result = TypeVar("Result")


class Operation:
    """The people of a site."""

    def __init__(self, site: Site) -> None:
        self.tasks: list[str] = []
        """Those whose submission was accepted."""
        self.probes: dict[str, str] = {}
        """By device, the task that tried it at the end."""
        self.resumed = 0
        """Devices that were quarantined, and resumed."""
        self._site = site

    async def carry_out(self, plan: Plan, injector: Injector) -> None:
        """Submit all tasks and do all faults, each at its time; then heal everything."""
        caring = asyncio.create_task(self._look_after_devices())
        try:
            first = [job for job in plan.jobs if not job.at]
            await self._submit_many(first)
            begun = time.monotonic()
            async with asyncio.TaskGroup() as group:
                for number, job in enumerate(plan.jobs[len(first) :], 1):
                    group.create_task(_at(begun + job.at, partial(self._submit, job, number)))
                for fault in plan.faults:
                    group.create_task(_at(begun + fault.at, partial(injector.inject, fault)))
        finally:
            caring.cancel()
            await self._site.heal()

    async def settle(self, within: float) -> float:
        """Wait until all tasks have ended, then try every device; return when the trying began, or was due.

        What is still not so after `within` seconds shows in the evidence.
        """
        caring = asyncio.create_task(self._look_after_devices())
        probed_at = inf
        try:
            async with asyncio.timeout(within):
                await self._all_ended()
                probed_at = time.clock_gettime(time.CLOCK_BOOTTIME)
                await asyncio.gather(*(self._probe(device) for device in self._site.devices))
                await self._all_ended()
        except TimeoutError:
            self.probes = {device: self.probes.get(device, "none") for device in self._site.devices}
        finally:
            caring.cancel()
        return probed_at

    async def _submit_many(self, jobs: Sequence[Job]) -> None:
        handles = await self._site.crib.submit_many([TaskRequest(goal=self._goal(job)) for job in jobs])
        self.tasks += [handle.id for handle in handles]

    async def _submit(self, job: Job, number: int) -> None:
        handle = await _answered(lambda: self._site.crib.submit(self._goal(job), key=f"job-{number}"))
        self.tasks.append(handle.id)

    async def _probe(self, device: str) -> None:
        host, _, name = device.partition("/")
        goal = self._goal(Job(at=0, seconds=PROBE_SECONDS, stray=False))
        handle = await _answered(
            lambda: self._site.crib.submit(goal, host_id=host, device_id=name, key=f"probe-{host}-{name}")
        )
        self.probes[device] = handle.id
        self.tasks.append(handle.id)

    def _goal(self, job: Job) -> str:
        words = [sys.executable, "-I", "-S", work.__file__, str(self._site.work_log), str(job.seconds)]
        return "exec " + shlex.join([*words, "stray"] if job.stray else words)

    async def _all_ended(self) -> None:
        for task in self.tasks:
            while (await _answered(partial(self._status, task))) is WorkflowExecutionStatus.RUNNING:
                await asyncio.sleep(LOOK_PAUSE)

    async def _status(self, task: str) -> WorkflowExecutionStatus | None:
        return (await self._site.client.get_workflow_handle(task).describe(rpc_timeout=CALL)).status

    async def _look_after_devices(self) -> None:
        """Resume devices that have failed too often, as a person does who finds nothing wrong with them."""
        pool = self._site.crib.pool()
        while True:
            with suppress(RPCError, ToolcribError):
                for device in await pool.devices():
                    if device.state == "quarantined":
                        self.resumed += 1
                        await pool.resume_device(device.key)
            await asyncio.sleep(LOOK_PAUSE)


async def _at(moment: float, act: Callable[[], Awaitable[None]]) -> None:
    await asyncio.sleep(moment - time.monotonic())
    await act()


async def _answered(call: Callable[[], Awaitable[Result]]) -> Result:
    """Return what `call` returns, making it again while the server is away."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await call()
            except (RPCError, NoConnection):
                await asyncio.sleep(LOOK_PAUSE)

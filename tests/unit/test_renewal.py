"""A lease lives by acknowledged renewals, and its work does not outlive it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, TypeVar, cast

import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.client import AsyncActivityCancelledError, Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment

from toolcrib.activities import renewal
from toolcrib.activities.guard import NotKilled, boottime
from toolcrib.activities.incarnation import Incarnation
from toolcrib.activities.presence import HostPresence
from toolcrib.activities.renewal import SAFE_PART, LeaseLost, Renewal
from toolcrib.scheduling.messages import Presence, Progress

Result = TypeVar("Result")

GONE = RPCError("no such activity", RPCStatusCode.NOT_FOUND, b"")
AWAY = RPCError("no answer", RPCStatusCode.UNAVAILABLE, b"")
TTL = 30.0
SHORT_TTL = 0.5


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renew every few hundredths of a second, though the lease itself is long."""
    monkeypatch.setattr(renewal, "RENEWALS_PER_TTL", 600)


class Server:
    """Temporal, as far as renewals go: it answers each as the test says, and well when that is all said."""

    def __init__(self, *answers: Exception | None, at_last: Exception | None = None) -> None:
        self.asked = 0
        self.told: list[Any] = []
        self._answers = list(answers)
        self._at_last = at_last

    def get_async_activity_handle(self, *, task_token: bytes) -> Server:
        assert task_token == b"test"
        return self

    async def heartbeat(self, *details: Any, rpc_timeout: timedelta) -> None:
        assert rpc_timeout.total_seconds() < TTL
        self.told.append(details)
        self.asked += 1
        answer = self._answers.pop(0) if self._answers else self._at_last
        if answer is not None:
            raise answer

    async def until_asked(self, times: int) -> None:
        async with asyncio.timeout(30):
            while self.asked < times:
                await asyncio.sleep(0.01)


class Lease:
    """A lease that is renewed: the deadlines that its guard was told, and the heartbeats of the SDK's own."""

    def __init__(self, server: Server) -> None:
        self.deadlines: list[float] = []
        self.heartbeats = 0
        self.beaten: list[Any] = []
        self._environment = ActivityEnvironment(cast("Client", server))
        self._environment.on_heartbeat = self._beat

    async def during(self, work: Callable[[Renewal], Coroutine[Any, Any, Result]], ttl: float = TTL) -> Result:
        """Renew the lease during `work`."""

        async def activity() -> Result:
            renewing = Renewal(ttl, self.deadlines.append)
            return await renewing.during(work(renewing))

        return await self._environment.run(activity)

    def _beat(self, *details: Any) -> None:
        self.heartbeats += 1
        self.beaten.append(details)


async def _served(work: Callable[[Renewal], Coroutine[Any, Any, None]]) -> None:
    await _served_by(Server(), work)


async def _served_by(server: Server, work: Callable[[Renewal], Coroutine[Any, Any, None]]) -> None:
    await Lease(server).during(work)


async def for_ever(_: Renewal) -> None:
    """Work without an end."""
    await asyncio.Event().wait()


async def test_it_renews_as_long_as_the_work_lasts() -> None:
    """The work's result comes back; meanwhile each renewal moved the deadline, and the SDK had its heartbeat, too."""
    server = Server()
    lease = Lease(server)

    async def work(_: Renewal) -> str:
        await server.until_asked(3)
        return "done"

    assert await lease.during(work) == "done"
    assert lease.deadlines == sorted(lease.deadlines)
    assert len(lease.deadlines) == lease.heartbeats == server.asked
    assert not [task for task in asyncio.all_tasks() if "Renewal" in repr(task.get_coro())], "it goes on renewing"


async def test_a_renewal_carries_the_newest_progress() -> None:
    """Both heartbeats do, since each takes the place of the other's details; without progress they carry nothing."""
    server = Server()
    lease = Lease(server)
    progress = Progress(lease_id="task-1.1.7", value=0.5, message="half")

    async def work(renewing: Renewal) -> None:
        await server.until_asked(2)
        renewing.news = lambda: progress
        await server.until_asked(4)

    await lease.during(work)
    assert (server.told[0], server.told[3]) == ((), (progress,))
    assert lease.beaten[:4] == server.told[:4]


async def test_the_deadline_counts_from_the_sending() -> None:
    """It is two thirds of the ttl after the renewal was sent, however late that was acknowledged."""
    server = Server()
    lease = Lease(server)

    async def work(renewing: Renewal) -> tuple[float, float]:
        before = boottime()
        await renewing.renew()
        return before, boottime()

    before, after = await lease.during(work)
    assert before <= lease.deadlines[0] - TTL * SAFE_PART <= after


@pytest.mark.parametrize("answer", [GONE, AsyncActivityCancelledError()], ids=["over", "cancelled"])
async def test_a_lost_lease_ends_its_work(answer: Exception) -> None:
    """When the server no longer counts on it, the work is cancelled and has ended before the loss is told."""
    ended = []

    async def work(_: Renewal) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    with pytest.raises(LeaseLost):
        await Lease(Server(None, answer)).during(work)
    assert ended


async def test_a_server_that_is_away_for_a_moment_costs_nothing() -> None:
    """A renewal that was not answered is made again, and the work goes on."""
    server = Server(AWAY, None, AWAY)
    lease = Lease(server)

    async def work(_: Renewal) -> str:
        await server.until_asked(4)
        return "done"

    assert await lease.during(work) == "done"
    assert len(lease.deadlines) == server.asked - 2


async def test_a_server_that_stays_away_ends_the_work_in_time() -> None:
    """Without an answer until the deadline the work ends, before the lease can be given away."""
    begin = boottime()
    with pytest.raises(LeaseLost, match="could not be renewed in time"):
        await Lease(Server(at_last=AWAY)).during(for_ever, SHORT_TTL)
    assert boottime() - begin >= SHORT_TTL * SAFE_PART


async def test_what_the_work_raises_comes_through() -> None:
    """An error of the work's is that of the whole."""

    async def work(_: Renewal) -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await Lease(Server()).during(work)


async def test_work_that_swallows_its_cancellation_has_lost_its_lease() -> None:
    """What it returns then counts for nothing; its end is waited for."""
    ended = []

    async def work(_: Renewal) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append(True)
        return "as if nothing had happened"

    with pytest.raises(LeaseLost):
        await Lease(Server(GONE)).during(work)
    assert ended


async def test_a_cancelled_lease_cancels_its_work() -> None:
    """Who cancels the whole gets the cancellation when the work has ended."""
    ended = []
    started = asyncio.Event()

    async def work(_: Renewal) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    running = asyncio.create_task(_served(work))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended


@pytest.mark.parametrize("by", ["server", "caller"])
async def test_what_is_left_of_the_work_is_told(by: str) -> None:
    """Work that was ended, but not all of it, is no clean end: that goes before the loss or the cancellation."""
    started = asyncio.Event()

    async def work(_: Renewal) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise NotKilled("process 7 does not end")

    running = asyncio.create_task(_served_by(Server(GONE) if by == "server" else Server(), work))
    if by == "caller":
        await started.wait()
        running.cancel()
    with pytest.raises(NotKilled):
        await running


@pytest.mark.parametrize(
    ("details", "ends_well"),
    [
        (ActivityCancellationDetails(not_found=True), True),
        (ActivityCancellationDetails(timed_out=True), True),
        (ActivityCancellationDetails(worker_shutdown=True), False),
    ],
)
async def test_a_presence_that_nobody_counts_on_ends_well(
    details: ActivityCancellationDetails, ends_well: bool
) -> None:
    """As after a worker slept: nothing has failed; one that is cancelled otherwise says so."""
    incarnation = Incarnation()
    incarnation.is_now(1)
    host, environment = HostPresence(incarnation), ActivityEnvironment(cast("Client", Server()))
    showing = asyncio.create_task(
        environment.run(host.presence, Presence(host_id="lab-1", pool="lab", incarnation=1, ttl=TTL))
    )
    await host.until(shown=True, timeout=10)
    environment.cancel(cancellation_details=details)
    await asyncio.wait({showing}, timeout=10)
    assert showing.done()
    assert showing.cancelled() is not ends_well
    await host.until(shown=False, timeout=10)

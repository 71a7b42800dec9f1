"""Work of an application's own, run in the background: rows S2-17 to S2-20 and S2-27 to S2-31, and what is our own."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from support.lab import Lab, eventually, until, until_pool, until_status
from support.servers import connect
from support.works import Gated
from toolcrib.client import InvalidRequest, TaskCancelled, TaskEnded, TaskFailed, TaskHandle, Toolcrib, WorkContext
from toolcrib.scheduling.errors import HostSuperseded, NotEnrolled
from toolcrib.worker.embedded import EmbeddedServer
from toolcrib.worker.sole_host import HostRunsAlready

KINDS = pytest.mark.parametrize("kind", ["wait", "block"], ids=["async", "sync"])


async def submitted(crib: Toolcrib, kind: str, *labels: str) -> list[TaskHandle]:
    """Submit one task of gated work for each label, in that order."""
    return [await crib.submit(work=kind, inputs={"label": label}) for label in labels]


@KINDS
async def test_s2_19_below_the_cap_a_submission_starts_at_once(lab: Lab, kind: str) -> None:
    """Its work runs in the application, with its inputs; what it returns is the result."""
    crib = await lab.pool()
    gated = Gated(crib)
    async with crib.worker(slots=1):
        (task,) = await submitted(crib, kind, "one")
        view = await until_status(task, "dispatched")
        assert (view.state, view.name, view.work) == ("running", kind, kind)
        assert (view.goal, view.workflow) == (None, None)
        gated.finish("one", {"pages": 3})
        assert await task.result() == {"pages": 3}
    assert gated.started == ["one"]


async def test_s2_20_at_the_cap_it_stays_pending(lab: Lab) -> None:
    """Though there are idle slots: its work is not started, and it says that the cap is why."""
    crib = await lab.pool(max_concurrent=1)
    gated = Gated(crib)
    async with crib.worker(slots=2):
        first, second = await submitted(crib, "wait", "one", "two")
        await until_status(first, "dispatched")
        view = await second.status()
        assert (view.state, view.pending_reason and view.pending_reason.code) == ("pending", "cap")
        gated.finish("one")
        await until_status(second, "dispatched")
        assert gated.started == ["one", "two"]
        gated.finish("two")
        await second.result()


async def test_s2_17_s2_18_queued_tasks_start_in_order_as_slots_open(lab: Lab) -> None:
    """Each end of a work starts the next one that was submitted, whichever of the running ones it was."""
    crib = await lab.pool()
    gated = Gated(crib)
    async with crib.worker(slots=2):
        tasks = await submitted(crib, "wait", "1", "2", "3", "4")
        await eventually(lambda: gated.has_started("2"), bool)
        assert sorted(gated.started) == ["1", "2"]
        gated.finish("2")
        await eventually(lambda: gated.has_started("3"), bool)
        gated.fail("1", ValueError("no such page"))
        await eventually(lambda: gated.has_started("4"), bool)
        assert gated.started[2:] == ["3", "4"]
        gated.finish("3")
        gated.finish("4")
        await asyncio.gather(*(task.result() for task in tasks[1:]))


@KINDS
async def test_s2_27_s2_30_s2_31_a_running_work_is_cancelled(lab: Lab, kind: str) -> None:
    """It is told to stop, its task is cancelled, and its slot serves the next one."""
    crib = await lab.pool()
    gated = Gated(crib)
    async with crib.worker(slots=1):
        task, next_one = await submitted(crib, kind, "one", "two")
        await eventually(lambda: gated.has_started("one"), bool)
        await task.cancel()
        with pytest.raises(TaskCancelled):
            await task.result()
        await eventually(lambda: gated.has_stopped("one"), bool)
        gated.finish("two", 2)
        assert await next_one.result() == 2
        assert (await task.status()).state == "cancelled"


async def test_s2_28_a_pending_task_is_cancelled(lab: Lab) -> None:
    """Its work never starts, also when a slot is free."""
    crib = await lab.pool()
    gated = Gated(crib)
    async with crib.worker(slots=1):
        first, second, third = await submitted(crib, "wait", "one", "two", "three")
        await eventually(lambda: gated.has_started("one"), bool)
        await second.cancel()
        gated.finish("one")
        gated.finish("three")
        await asyncio.gather(first.result(), third.result())
        assert (await second.status()).state == "cancelled"
    assert gated.started == ["one", "three"]


async def test_s2_29_an_ended_task_cannot_be_cancelled(lab: Lab) -> None:
    """It is refused for what is completed or failed, which stays so, and does nothing to what is cancelled."""
    crib = await lab.pool()
    gated = Gated(crib)
    async with crib.worker():
        done, failed, cancelled = await submitted(crib, "wait", "done", "failed", "cancelled")
        gated.finish("done")
        gated.fail("failed", ValueError("no"))
        await until_status(done, "done")
        await until_status(failed, "failed")
        await cancelled.cancel()
        await until_status(cancelled, "cancelled")
        for task in (done, failed):
            with pytest.raises(TaskEnded):
                await task.cancel()
        await cancelled.cancel()
    states = [(await task.status()).state for task in (done, failed, cancelled)]
    assert states == ["completed", "failed", "cancelled"]


async def test_what_a_work_raises_fails_its_task(lab: Lab) -> None:
    """With its text; inputs that are not its parameters are named."""
    crib = await lab.pool()
    gated = Gated(crib)
    async with crib.worker():
        (task,) = await submitted(crib, "block", "one")
        gated.fail("one", ValueError("page 7 is torn"))
        with pytest.raises(TaskFailed, match="ValueError: page 7 is torn"):
            await task.result()
        with pytest.raises(TaskFailed, match="the inputs of work 'wait' do not fit: missing a required argument"):
            await (await crib.submit(work="wait")).result()
        with pytest.raises(TaskFailed, match="got multiple values for keyword argument 'context'"):
            await (await crib.submit(work="block", inputs={"label": "x", "context": 1})).result()


async def test_a_work_gets_its_context(lab: Lab) -> None:
    """If it has a parameter of that name: the task's id, slot, attempt and folder; its progress is the task's."""
    crib = await lab.pool()

    @crib.work("tell")
    def tell(context: WorkContext) -> list[Any]:
        context.progress(0.25, "a quarter")
        (context.artifacts / "note").write_text("kept")
        return [context.task_id, context.host_id, context.device_id, context.attempt, context.cancelled]

    gated = Gated(crib)
    async with crib.worker(host_id="me"):
        task = await crib.submit(work="tell")
        assert await task.result() == [task.id, "me", "slot-1", 1, False]
        (slow,) = await submitted(crib, "block", "slow")
        view = await until(slow, lambda view: view.progress is not None)
        assert (view.progress, view.message) == (0.5, "at slow")
        gated.finish("slow")
        await slow.result()


async def test_goals_do_not_get_an_applications_slots(lab: Lab) -> None:
    """A task that asks for nothing waits for another device; and a work does not run on those."""
    crib = await lab.pool()
    gated = Gated(crib)
    async with crib.worker(slots=1):
        goal = await crib.submit("echo from a shell")
        reason = (await goal.status()).pending_reason
        text = "all of the pool's devices are slots of applications, for works of theirs alone"
        assert (reason and reason.text) == text
        async with lab.host():
            assert (await goal.result())["output"] == "from a shell\n"
            assert (await goal.status()).host_id == "lab-1"
            tasks = await submitted(crib, "wait", "one", "two")
            gated.finish("one")
            gated.finish("two")
            await asyncio.gather(*(task.result() for task in tasks))
            assert {(await task.status()).host_id for task in tasks} != {"lab-1"}


async def test_an_unknown_work_waits_and_says_for_what(lab: Lab) -> None:
    """An application that has it may come; a name that looks like it is suggested."""
    crib = await lab.pool()
    Gated(crib)
    async with crib.worker():
        reason = (await (await crib.submit(work="blok")).status()).pending_reason
    assert reason is not None
    assert (reason.code, reason.text) == (
        "no_such_device",
        "no device has tag work:blok; did you mean work:block?",
    )


async def test_an_application_that_blocks_its_loop_keeps_its_leases(lab: Lab) -> None:
    """Its worker has a loop of its own: works run on at their first attempt, for more than twice the ttl."""
    crib = await lab.pool(lease_ttl=3, max_attempts=1)

    @crib.work("rest")
    def rest(seconds: float) -> str:
        time.sleep(seconds)
        return threading.current_thread().name

    async with crib.worker():
        task = await crib.submit(work="rest", inputs={"seconds": 7})
        await until_status(task, "dispatched")
        time.sleep(7)  # noqa: ASYNC251 - that is the point
        await task.result()
        assert (await task.status()).attempt == 1


async def test_a_worker_that_leaves_gives_its_work_back(lab: Lab) -> None:
    """What runs is returned, which is not counted, what waits stays; the next worker runs both."""
    crib = await lab.pool(max_attempts=1)
    gated = Gated(crib)
    async with crib.worker(slots=1, drain_timeout=0):
        running, waiting = await submitted(crib, "block", "one", "two")
        await eventually(lambda: gated.has_started("one"), bool)
    assert gated.stopped == ["one"]
    pool = await until_pool(crib, lambda pool: pool.leased == 0)
    assert (pool.queued, [device.state for device in pool.devices]) == (2, ["offline"])
    gated.finish("one", 1)
    gated.finish("two", 2)
    async with crib.worker(slots=1):
        assert (await running.result(), await waiting.result()) == (1, 2)
    assert [attempt.outcome for attempt in (await running.status()).attempts] == ["returned", "done"]


async def test_a_worker_that_leaves_lets_work_finish(lab: Lab) -> None:
    """For as long as it was told to; nothing new begins meanwhile."""
    crib = await lab.pool()
    gated = Gated(crib)
    async with crib.worker(slots=1, drain_timeout=60):
        running, waiting = await submitted(crib, "wait", "one", "two")
        await eventually(lambda: gated.has_started("one"), bool)
        finishing = asyncio.create_task(_finish_when_draining(crib, gated))
    await finishing
    assert await running.result() == 1
    assert (await waiting.status()).status == "queued"
    assert gated.started == ["one"]


async def _finish_when_draining(crib: Toolcrib, gated: Gated) -> None:
    await until_pool(crib, lambda pool: [host.state for host in pool.hosts] == ["draining"])
    gated.finish("one", 1)


async def test_a_worker_that_is_superseded_ends_its_block(
    lab: Lab, server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block is cancelled, and raises why; the newer worker serves on."""
    crib, other = await lab.pool(), Toolcrib(await connect(server.address, lab.client.namespace), pool="lab")
    Gated(crib)
    Gated(other).finish("one", 1)
    newer: list[asyncio.Task[Any]] = []

    async def be_superseded() -> None:
        async with crib.worker(host_id="twice"):
            with pytest.raises(HostRunsAlready):
                await other.worker(host_id="twice").__aenter__()
            monkeypatch.setenv("TOOLCRIB_LOCKS", str(tmp_path / "as-on-another-machine"))
            newer.append(asyncio.create_task(_serve_one(other)))
            await asyncio.Event().wait()

    with pytest.raises(HostSuperseded):
        await asyncio.wait_for(be_superseded(), 60)
    assert await newer[0] == 1


async def _serve_one(crib: Toolcrib) -> Any:
    async with crib.worker(host_id="twice"):
        (task,) = await submitted(crib, "wait", "one")
        return await task.result()


async def test_a_worker_whose_key_was_revoked_does_not_enroll_itself(lab: Lab) -> None:
    """Whoever revoked it has to enroll it again."""
    crib = await lab.pool()
    Gated(crib)
    async with crib.worker(host_id="out"):
        pass
    await crib.pool().revoke_host("out")
    with pytest.raises(NotEnrolled, match="host 'out' is not enrolled"):
        async with crib.worker(host_id="out"):
            pytest.fail("it was revoked")


async def test_what_cannot_be_is_refused(lab: Lab) -> None:
    """A name that is taken or malformed, two kinds of work in one task, a worker without works or slots."""
    crib = await lab.pool()
    with pytest.raises(InvalidRequest, match="the application has no works yet"):
        crib.worker()
    gated = Gated(crib)
    with pytest.raises(InvalidRequest, match="work: 'wait' is registered already"):
        crib.work("wait")(gated.block)
    with pytest.raises(InvalidRequest, match="work: 'two words' is not 1 to 64 of"):
        crib.work("two words")(gated.block)
    with pytest.raises(InvalidRequest, match="goal, workflow, work: give exactly one of them; 2 were given"):
        await crib.submit("echo", work="wait")
    with pytest.raises(InvalidRequest, match="slots: 0 is less than 1"):
        crib.worker(slots=0)

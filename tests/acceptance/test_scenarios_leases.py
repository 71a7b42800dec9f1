"""Leases that are lost, or end too early or too late: rows S13 to S23 of failures that other schedulers had."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import Any

from temporalio.api.enums.v1 import EventType

from support.drivers import DEADLY, SLOW, slow
from support.lab import Lab, eventually, slot, until, until_pool, until_status
from support.lost_answers import LostAnswers, losing
from support.processes import host_file, toolcrib
from toolcrib.scheduling.device import DeviceSpec

TTL = 3.0
QUICK: dict[str, Any] = {"claim_timeout": 20, "lease_ttl": TTL, "max_attempts": 5}
ROOM = 5.0
"""Seconds that a busy machine may add to a bound."""


def worker(lab: Lab, folder: Path, file: Path) -> Any:
    """Run a host's worker as a process of its own."""
    return toolcrib(lab.client, folder, "worker", "--role", "host", "--config", str(file))


async def test_scenario_s13_work_may_last_longer_than_the_ttl(lab: Lab) -> None:
    """A command of more than two ttls, without a word in between, is done at its first attempt."""
    crib = await lab.pool(**QUICK)
    async with lab.host():
        view = await until_status(await crib.submit(f"sleep {2.5 * TTL}"), "done")
    assert [attempt.outcome for attempt in view.attempts] == ["done"]


async def test_scenario_s15_a_slow_clean_up_loses_no_lease(lab: Lab) -> None:
    """While its driver cleans, for more than two ttls, the device is nobody else's; then the result is there."""
    crib = await lab.pool(**QUICK)
    slow.may_end.clear()
    async with lab.host(devices=[DeviceSpec(id="browser", driver=SLOW, driver_type="browser")]):
        first, second = await crib.submit("echo 1"), await crib.submit("echo 2")
        await eventually(lambda: _cleans(first.id), bool)
        begun = time.monotonic()
        while time.monotonic() - begun < 2.5 * TTL:
            assert [(await task.status()).status for task in (first, second)] == ["dispatched", "queued"]
            await asyncio.sleep(0.2)
        slow.may_end.set()
        assert (await first.result())["output"] == "1\n"
        assert (await second.result())["output"] == "2\n"
    assert [len((await task.status()).attempts) for task in (first, second)] == [1, 1]


async def test_scenario_s17_a_lost_answer_to_a_claim_costs_nothing(lab: Lab, tmp_path: Path) -> None:
    """The claim is made again and gets the same answer: the work runs once, at the first attempt."""
    crib, answers = await lab.pool(**QUICK), LostAnswers("claim")
    async with Lab(losing(lab.client, answers), lab.crib, lab.folder).host():
        task = await crib.submit(f"echo ran >>{tmp_path / 'journal'}")
        view = await until_status(task, "done")
    assert answers.left == []
    assert [attempt.outcome for attempt in view.attempts] == ["done"]
    assert (tmp_path / "journal").read_text() == "ran\n"


async def test_scenario_s19_each_attempt_has_one_end(lab: Lab, tmp_path: Path) -> None:
    """A host that was out of touch tells of an attempt that is over: nobody hears of it again."""
    crib = await lab.pool(**QUICK)
    async with worker(lab, tmp_path, host_file(tmp_path, "a", [slot("one"), slot("two")])) as sleeper:
        task = await crib.submit('[ "$TOOLCRIB_ATTEMPT" != 1 ] || sleep 300')
        await until_status(task, "dispatched")
        sleeper.send_signal(signal.SIGSTOP)
        async with lab.host("b"):
            view = await until_status(task, "done")
        sleeper.send_signal(signal.SIGCONT)
        await until_status(await crib.submit("true", host_id="a", device_id="two"), "done")
    assert [attempt.outcome for attempt in view.attempts] == ["expired", "done"]
    assert (await task.status()).attempts == view.attempts
    kinds = [event.event_type for event in (await lab.client.get_workflow_handle(task.id).fetch_history()).events]
    ends = (EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT, EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)
    assert [kinds.count(end) for end in ends] == [1, 1]
    assert kinds.count(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED) == 1


async def test_scenario_s21_who_dies_before_it_begins_is_on_record(lab: Lab, tmp_path: Path) -> None:
    """A worker that is gone as soon as it has a lease, before it claimed it, is named on the task's attempt."""
    crib = await lab.pool(**QUICK)
    trap, file = tmp_path / "trap", host_file(tmp_path, "a")
    file.write_text(
        f"host:\n  id: a\n  pool: lab\n  runners: {{goal: shell}}\n  devices:\n"
        f'    - {{id: d, driver: "{DEADLY}", driver_type: local, properties: {{trap: "{trap}"}}}}\n'
    )
    async with worker(lab, tmp_path, file) as victim:
        await until_pool(crib, lambda pool: [host.state for host in pool.hosts] == ["online"])
        trap.touch()
        task = await crib.submit("true")
        assert await asyncio.wait_for(victim.wait(), 30) == -signal.SIGKILL
        view = await until(task, lambda view: view.attempts[0].outcome is not None)
    first = view.attempts[0]
    assert (first.host_id, first.device_id, first.outcome, first.claimed_at) == ("a", "d", "expired", None)
    assert first.reason == "the host stopped renewing it"
    async with lab.host("b"):
        assert (await until_status(task, "done")).host_id == "b"


async def test_scenario_s23_a_lease_does_not_outlive_its_host(lab: Lab, tmp_path: Path) -> None:
    """Within its ttl after the host's death the attempt is over, and both task and pool say why."""
    crib = await lab.pool(**QUICK)
    async with worker(lab, tmp_path, host_file(tmp_path, "a")) as dying:
        task = await crib.submit("sleep 300")
        await until_status(task, "dispatched")
        dying.kill()
        died = time.time()
        view = await until(task, lambda view: view.attempts[0].outcome is not None)
    ended = view.attempts[0].ended_at
    assert ended is not None
    assert ended.timestamp() - died < TTL + ROOM
    assert (view.status, view.attempts[0].reason) == ("queued", "the host stopped renewing it")
    pool = await until_pool(crib, lambda pool: pool.hosts[0].state == "offline")
    assert pool.devices[0].state in {"resting", "offline"}


async def _cleans(task_id: str) -> bool:
    return any(lease.startswith(task_id) for lease in slow.cleans)

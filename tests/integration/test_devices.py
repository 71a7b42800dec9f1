"""Whatever is killed, stopped, deleted or started twice: two works never touch one device at the same time."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from asyncio.subprocess import Process
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest

from support.guarded import alive, children, until
from support.lab import Lab, eventually, slot, until_pool, until_status
from support.lab import until as until_task
from support.processes import host_file, toolcrib
from support.shared_driver import SHARED
from toolcrib.client import TaskRequest
from toolcrib.scheduling.device import DeviceSpec

QUICK: dict[str, Any] = {"claim_timeout": 20, "lease_ttl": 5, "max_attempts": 5}


class Journal:
    """Signs of life that works write down themselves: which one it is, and when, every few hundredths of a second."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "journal"

    @property
    def goal(self) -> str:
        """A first work that stays for ever, with a child that has left its session; a later one ends at once."""
        beat = f'echo "$N $(date +%s%N)" >>{self._file}'
        return (
            f"export N=1; mkdir {self._file}.begun 2>/dev/null || {{ N=2; {beat}; echo second; exit; }}\n"
            f"""trap '' TERM INT HUP\nsetsid sh -c 'trap "" TERM; while :; do {beat}; sleep 0.03; done' &\n"""
            f"while :; do {beat}; sleep 0.03; done"
        )

    def times(self, work: int) -> list[float]:
        """Return when the first work (1) or a later one (2) showed life, in unix seconds."""
        if not self._file.exists():
            return []
        beats = [line.split() for line in self._file.read_text().splitlines()]
        return [int(beat[1]) / 1e9 for beat in beats if beat[0] == str(work) and len(beat) == 2]


def worker(lab: Lab, folder: Path, host_id: str = "a", devices: tuple[DeviceSpec, ...] = (slot(),)) -> Any:
    """Run a host's worker as a process of its own."""
    file = host_file(folder, host_id, devices)
    return toolcrib(lab.client, folder, "worker", "--role", "host", "--config", str(file))


async def started(lab: Lab, journal: Journal) -> Any:
    """Submit a task, and return it when its first work shows life."""
    task = await (await lab.pool(**QUICK)).submit(journal.goal)
    await until(lambda: len(journal.times(1)) > 4, within=30)
    return task


async def guard_of(process: Process) -> int:
    """Return the guard of a worker."""
    (guard,) = [
        child for child in children(process.pid) if b"guard_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
    return guard


async def finished(task: Any, journal: Journal) -> Any:
    """Return the view of a task that a second work has done, having proved that they never met."""
    view = await until_task(task, lambda view: view.ended)
    assert (view.status, view.result["output"]) == ("done", "second\n")
    assert max(journal.times(1)) < min(journal.times(2))
    return view


async def test_a_killed_worker_meets_no_second_work(lab: Lab, tmp_path: Path) -> None:
    """A worker that is killed and started again at once is no clone; the old work is gone before the new begins."""
    journal = Journal(tmp_path)
    async with worker(lab, tmp_path) as first:
        task = await started(lab, journal)
        first.kill()
        await first.wait()
    async with worker(lab, tmp_path):
        view = await finished(task, journal)
    assert [attempt.outcome for attempt in view.attempts] == ["expired", "done"]


async def test_a_worker_that_sleeps_too_long_meets_no_second_work(lab: Lab, tmp_path: Path) -> None:
    """While a worker is stopped its work ends before the lease does; awake again, its report changes nothing."""
    journal = Journal(tmp_path)
    async with worker(lab, tmp_path) as sleeper:
        task = await started(lab, journal)
        sleeper.send_signal(signal.SIGSTOP)
        view = await until_task(task, lambda view: view.attempts[0].outcome is not None)
        ended_at = view.attempts[0].ended_at
        assert ended_at is not None
        assert max(journal.times(1)) < ended_at.timestamp()
        beats = len(journal.times(1))
        sleeper.send_signal(signal.SIGCONT)
        view = await finished(task, journal)
    assert len(journal.times(1)) == beats
    assert [attempt.outcome for attempt in view.attempts] == ["expired", "done"]
    assert view.attempts[0].reason == "the host stopped renewing it"


async def test_a_killed_guard_ends_its_worker(lab: Lab, tmp_path: Path) -> None:
    """A worker whose guard is killed has ended its works, says so and exits with 1; the next one goes on."""
    journal = Journal(tmp_path)
    async with worker(lab, tmp_path) as first:
        task = await started(lab, journal)
        os.kill(await guard_of(first), signal.SIGKILL)
        assert await asyncio.wait_for(first.wait(), 30) == 1
    assert "error: the guard process died, and this host's work with it\nhint: " in (tmp_path / "log").read_text()
    async with worker(lab, tmp_path):
        await finished(task, journal)


async def kill_at_once(process: Process) -> None:
    """Kill a worker, its guard and its keepers, so that none of them can do anything about the others' end."""
    guard = await guard_of(process)
    pids = [process.pid, guard, *children(guard)]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, number)
    await process.wait()
    await until(lambda: not any(map(alive, pids)))


async def test_what_survives_them_all_is_gone_before_new_work(lab: Lab, tmp_path: Path) -> None:
    """If worker, guard and keepers die at once, the next worker ends what they left before it takes anything."""
    journal = Journal(tmp_path)
    async with worker(lab, tmp_path) as first:
        task = await started(lab, journal)
        await kill_at_once(first)
    beats = len(journal.times(1))
    await until(lambda: len(journal.times(1)) > beats)
    async with worker(lab, tmp_path):
        await finished(task, journal)
    assert "ended a process of an earlier life" in (tmp_path / "log").read_text()
    assert not list((tmp_path / "home/hosts/a/leases").iterdir())


async def test_another_host_ends_what_a_device_has_left(lab: Lab, tmp_path: Path) -> None:
    """If they die at once, another host that has the same physical device ends what is left before it uses it."""
    journal, device = Journal(tmp_path), DeviceSpec(id="phone", driver=SHARED, driver_type="phone")
    async with worker(lab, tmp_path, "a", (device,)) as first:
        task = await started(lab, journal)
        await kill_at_once(first)
    async with worker(lab, tmp_path, "b", (device,)):
        view = await finished(task, journal)
    assert view.host_id == "b"
    assert "the last holder of a device died with it" in (tmp_path / "log").read_text()


async def test_a_reset_task_meets_no_second_work(lab: Lab, tmp_path: Path) -> None:
    """A task that is reset while it runs gets a new lease, whose work begins when the old work is gone."""
    journal = Journal(tmp_path)
    async with worker(lab, tmp_path):
        task = await started(lab, journal)
        await lab.client.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace=lab.client.namespace,
                workflow_execution=WorkflowExecution(workflow_id=task.id),
                workflow_task_finish_event_id=4,
                request_id=task.id,
                reason="operator",
            )
        )
        view = await finished(task, journal)
    assert view.attempts[-1].outcome == "done"


async def two_hosts_share_a_device(lab: Lab, folder: Path, count: int) -> set[str]:
    """Run tasks on two hosts that name one physical device; prove that no two met, and return the hosts they ran on."""
    phone, journal = DeviceSpec(id="phone", driver=SHARED, driver_type="phone"), folder / "journal"
    goal = f'b=$(date +%s%N); sleep 0.2; echo "$b $(date +%s%N) $TOOLCRIB_HOST_ID" >>{journal}'
    crib = await lab.pool(**QUICK)
    async with worker(lab, folder / "1", "a", (phone,)), worker(lab, folder / "2", "b", (phone,)):
        await eventually(crib.pool().show, lambda pool: len(pool.devices) == 2)
        tasks = await crib.submit_many([TaskRequest(goal=goal, pool="lab")] * count)
        async with asyncio.timeout(120):
            await asyncio.gather(*(task.result() for task in tasks))
        views = [await task.status() for task in tasks]
    runs = sorted(line.split() for line in journal.read_text().splitlines())
    assert len(runs) == count
    assert not [(one, two) for one, two in itertools.pairwise(runs) if int(two[0]) < int(one[1])]
    assert {attempt.outcome for view in views for attempt in view.attempts} <= {"done", "returned"}
    return {host for _, _, host in runs}


async def test_two_hosts_with_one_physical_device_take_turns(lab: Lab, tmp_path: Path) -> None:
    """Two hosts that name the same physical device never use it at once, and both get to use it."""
    assert await two_hosts_share_a_device(lab, tmp_path, 10) == {"a", "b"}


async def test_a_cleaner_that_deletes_locks_changes_nothing(lab: Lab, tmp_path: Path) -> None:
    """While somebody deletes all lock files all the time, two hosts never use one device at once."""

    async def clean() -> None:
        while True:
            for file in (tmp_path / "locks").glob("*"):
                file.unlink(missing_ok=True)
            await asyncio.sleep(0.01)

    cleaner = asyncio.create_task(clean())
    try:
        await two_hosts_share_a_device(lab, tmp_path, 10)
    finally:
        cleaner.cancel()


async def test_a_device_in_use_is_given_back(lab: Lab, tmp_path: Path) -> None:
    """A lease that cannot have its device in time is returned with the name of who has it, and starts nothing."""
    phone, free = DeviceSpec(id="phone", driver=SHARED, driver_type="phone"), tmp_path / "free"
    crib = await lab.pool(claim_timeout=20, lease_ttl=3)
    async with worker(lab, tmp_path, "a", (phone,)) as holder, worker(lab, tmp_path, "b", (phone,)):
        long = await crib.submit(f"while [ ! -e {free} ]; do sleep 0.1; done", host_id="a")
        lease = (await until_status(long, "dispatched")).attempts[0].lease_id
        other = await crib.submit(f"[ -e {free} ]", host_id="b")
        view = await until_task(other, lambda view: bool(view.attempts and view.attempts[0].outcome))
        free.touch()
        await long.result()
        await other.result()
    first = view.attempts[0]
    assert first.outcome == "returned"
    assert first.reason == f"device phone is still in use by lease {lease} of host a (process {holder.pid})"


async def test_a_second_worker_of_a_host_is_refused(lab: Lab, tmp_path: Path) -> None:
    """It says in two lines who has the host and exits with 4; when that one is killed the next one starts at once."""
    crib = await lab.pool()
    async with worker(lab, tmp_path) as first:
        await until_pool(crib, lambda pool: len(pool.devices) == 1)
        async with worker(lab, tmp_path / "2") as second:
            assert await asyncio.wait_for(second.wait(), 30) == 4
        said = (tmp_path / "2/log").read_text().splitlines()[-2:]
        assert said[0] == f"error: host a runs already on this machine: process {first.pid}"
        assert said[1].startswith("hint: Stop that one first")
        assert first.returncode is None
        first.kill()
    async with worker(lab, tmp_path):
        assert (await (await crib.submit("echo back")).result())["output"] == "back\n"


async def test_the_next_worker_on_the_machine_does_not_wait_for_what_the_last_one_held(
    lab: Lab, tmp_path: Path
) -> None:
    """Its lock says that the work is gone: a dead worker's lease ends when the new one registers, not with its ttl."""
    crib = await lab.pool(lease_ttl=60, max_attempts=3)
    slots = (slot("one"), slot("two"))
    async with worker(lab, tmp_path, "a", slots) as first:
        task = await crib.submit('[ "$TOOLCRIB_ATTEMPT" = 2 ] || sleep 600')
        await until_status(task, "dispatched")
        first.kill()
        await first.wait()
    async with worker(lab, tmp_path, "a", slots):
        view = await until_task(task, lambda view: view.ended)
    assert [attempt.outcome for attempt in view.attempts] == ["expired", "done"]
    assert view.attempts[0].reason == "its host's worker was started anew"
    assert view.attempts[0].device_id != view.attempts[1].device_id


@pytest.mark.parametrize("kind", ["a file", "below a file"])
async def test_a_lock_folder_that_cannot_be_used_is_refused(
    lab: Lab, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that cannot lock devices does not start: two lines, the folder's name, and exit code 4."""
    (tmp_path / "file").touch()
    folder = tmp_path / "file" if kind == "a file" else tmp_path / "file/locks"
    monkeypatch.setenv("TOOLCRIB_LOCKS", str(folder))
    async with worker(lab, tmp_path) as process:
        assert await asyncio.wait_for(process.wait(), 30) == 4
    said = (tmp_path / "log").read_text().splitlines()[-2:]
    assert said[0].startswith("error: the folder of the device locks cannot be used: ")
    assert str(folder) in said[0]
    assert said[1] == f"hint: Let all users write to it, once, as root: install -d -m 1777 {folder}"

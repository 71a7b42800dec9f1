"""Devices and hosts that fail: tasks go elsewhere, devices rest, and a person mends what does not mend itself."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from support.drivers import flaky, flaky_slot
from support.lab import Lab, slot, until, until_pool, until_status
from support.processes import host_file, toolcrib, without_waiting
from toolcrib.client import DeviceView, InvalidRequest, Toolcrib, UnknownDevice

LAPSED = "failed {}: the host failed: driver support.drivers:flaky could not prepare a: its battery is flat"


async def in_state(crib: Toolcrib, state: str, key: str) -> DeviceView:
    """Return a device as soon as it is in this state."""
    pool = await until_pool(crib, lambda pool: any(one.key == key and one.state == state for one in pool.devices))
    return next(one for one in pool.devices if one.key == key)


async def command(lab: Lab, *words: str) -> tuple[int | None, str]:
    """Run a `toolcrib` command for pool `lab`, and return its exit code and what it wrote."""
    folder = lab.folder / f"command-{time.monotonic_ns()}"
    async with toolcrib(lab.client, folder, *words, "--pool", "lab") as process, asyncio.timeout(60):
        await process.wait()
    return process.returncode, without_waiting((folder / "log").read_text())


async def test_a_task_goes_elsewhere_and_the_device_rests(lab: Lab) -> None:
    """A device that cannot be prepared costs one attempt; it rests, says why and until when, and serves again."""
    crib = await lab.pool()
    flaky.broken = {"a"}
    async with lab.host(devices=[flaky_slot("a"), flaky_slot("b")]):
        view = await until_status(await crib.submit("true"), "done")
        assert [(one.device_id, one.outcome) for one in view.attempts] == [("a", "expired"), ("b", "done")]
        rests = await crib.pool().device("lab-1/a")
        assert rests.state == "resting"
        assert (rests.reason or "").startswith(LAPSED.format("once") + "; rests until ")
        flaky.broken = set()
        waits = await crib.submit("true", device_id="a")
        reason = (await waits.status()).pending_reason
        assert (reason and reason.code) == "resting"
        await until_status(waits, "done")
        assert (await in_state(crib, "idle", "lab-1/a")).reason is None


@pytest.mark.long
async def test_the_third_failure_in_a_row_is_the_last_until_a_person_resumes_it(lab: Lab) -> None:
    """It rests for ten and then for twenty seconds; after the third failure it and its task wait for a command."""
    crib = await lab.pool(max_attempts=9)
    flaky.broken = {"a"}
    async with lab.host(devices=[flaky_slot("a")]):
        task = await crib.submit("true")
        begun = time.monotonic()
        await until(task, lambda view: len(view.attempts) == 2)
        assert 10 <= time.monotonic() - begun < 15
        await until(task, lambda view: len(view.attempts) == 3)
        assert 30 <= time.monotonic() - begun < 37
        broken = await in_state(crib, "quarantined", "lab-1/a")
        assert broken.reason == LAPSED.format("3 times in a row")
        reason = (await task.status()).pending_reason
        assert (reason and reason.code) == "quarantined"
        flaky.broken = set()
        assert await command(lab, "device", "resume", "lab-1/a") == (0, "device lab-1/a is in service\n")
        view = await until_status(task, "done")
    assert [one.outcome for one in view.attempts] == ["expired"] * 3 + ["done"]


async def test_a_device_is_quarantined_and_resumed_by_commands(lab: Lab) -> None:
    """Nobody gets it in between, and all see why."""
    crib = await lab.pool()
    async with lab.host():
        code, _ = await command(lab, "device", "quarantine", "lab-1/slot-1", "--reason", "its screen is broken")
        assert code == 0
        task = await crib.submit("true")
        assert (await task.status()).status == "queued"
        code, shown = await command(lab, "device", "show", "lab-1/slot-1", "-o", "json")
        view = json.loads(shown)
        assert (code, view["state"], view["reason"]) == (0, "quarantined", "its screen is broken")
        assert (await command(lab, "device", "resume", "lab-1/slot-1"))[0] == 0
        await until_status(task, "done")


async def test_what_is_refused_leaves_no_trace(lab: Lab) -> None:
    """An unknown device or host, or a quarantine without a reason, is refused before anything is written."""
    crib = await lab.pool()
    await lab.register_only()
    pool, handle = crib.pool(), lab.client.get_workflow_handle("toolcrib-pool-lab")
    before = (await handle.describe()).history_length
    for call in (pool.drain_device, pool.resume_device, pool.device):
        with pytest.raises(UnknownDevice, match="no device 'lab-1/slot-2'"):
            await call("lab-1/slot-2")
    with pytest.raises(UnknownDevice, match="no host 'lab-2'; did you mean lab-1"):
        await pool.drain_host("lab-2")
    with pytest.raises(InvalidRequest, match="reason"):
        await pool.quarantine_device("lab-1/slot-1", " ")
    code, written = await command(lab, "host", "drain", "lab-2")
    assert (code, written.splitlines()[1]) == (8, "hint: See: toolcrib host list --pool lab")
    assert (await handle.describe()).history_length == before


async def test_s23_s35_the_task_of_a_dead_host_runs_elsewhere_soon(lab: Lab, tmp_path: Path) -> None:
    """Within ttl + 5 s of its host's death it runs on another host, though the dead one has a device left."""
    ttl = 5.0
    crib = await lab.pool(lease_ttl=ttl)
    file = host_file(tmp_path, "a", [slot("one"), slot("two")])
    async with toolcrib(lab.client, tmp_path, "worker", "--role", "host", "--config", str(file)) as dying:
        await until_pool(crib, lambda pool: len(pool.devices) == 2)
        task = await crib.submit('[ "$TOOLCRIB_HOST_ID" = b ] || sleep 60')
        await until_status(task, "dispatched")
        async with lab.host("b"):
            dying.kill()
            died = time.time()
            view = await until_status(task, "done")
            pool = await until_pool(crib, lambda pool: [host.state for host in pool.hosts] == ["offline", "online"])
    assert [(one.host_id, one.outcome) for one in view.attempts] == [("a", "expired"), ("b", "done")]
    claimed = view.attempts[1].claimed_at
    assert claimed is not None
    assert claimed.timestamp() - died < ttl + 5
    assert [one.state for one in pool.devices] == ["resting", "offline", "idle"]

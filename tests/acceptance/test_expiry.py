"""Leases that nobody claims or renews. Rows S1-50 to S1-58."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.lab import Lab, slot, until, until_pool, until_status
from support.processes import host_file, toolcrib
from toolcrib.client import TaskFailed, Toolcrib

QUICK: dict[str, Any] = {"claim_timeout": 1, "lease_ttl": 3}


async def test_s1_50_an_unclaimed_lease_is_detected(lab: Lab) -> None:
    """A lease that no host takes expires after the claim timeout."""
    crib = await lab.pool(**QUICK)
    await lab.register_only()
    view = await until(await crib.submit("echo"), lambda view: len(view.attempts) > 1)
    assert (view.attempts[0].outcome, view.attempts[0].claimed_at) == ("expired", None)


async def test_s1_51_a_silent_host_is_detected(lab: Lab, tmp_path: Path) -> None:
    """When its host is killed while it runs, the attempt expires, the host is offline, and the task runs elsewhere."""
    crib = await lab.pool(**QUICK)
    async with toolcrib(
        lab.client, tmp_path, "worker", "--role", "host", "--config", str(host_file(tmp_path, "a"))
    ) as host:
        task = await crib.submit('[ "$TOOLCRIB_HOST_ID" = b ] || sleep 60', max_attempts=10)
        await until_status(task, "dispatched")
        host.kill()
        await until(task, lambda view: view.attempts[0].outcome == "expired")
    async with lab.host("b"):
        view = await until(task, lambda view: view.ended)
    assert (view.status, view.host_id) == ("done", "b")
    assert view.attempts[0].reason == "the host stopped renewing it"


async def test_s1_52_with_attempts_left_it_is_queued_again(lab: Lab) -> None:
    """After an expired lease the task is queued, and in its old place: before those submitted later."""
    crib = await lab.pool(**QUICK)
    await lab.register_only(devices=[slot("a", tags=["x"])])
    first = await crib.submit("echo 1", tags=["x"])
    later = await crib.submit("echo 2", tags=["x"])
    await until(first, lambda view: len(view.attempts) == 2)
    assert (await later.status()).attempts == []


async def test_s1_53_the_device_is_released(lab: Lab) -> None:
    """The device of an expired lease serves another task."""
    crib = await lab.pool(**QUICK)
    await lab.register_only()
    first = await crib.submit("echo 1", max_attempts=1)
    second = await crib.submit("echo 2")
    await until_status(first, "failed")
    await until_status(second, "assigned")


async def test_s1_54_an_expired_attempt_stays_on_record(lab: Lab) -> None:
    """The attempts of a task that has ended tell number, host, device, lease, times and outcome of each."""
    crib = await lab.pool(**QUICK)
    await lab.register_only("lab-3", [slot("slot-9")])
    view = await until_status(await crib.submit("echo", max_attempts=2), "failed")
    assert [attempt.number for attempt in view.attempts] == [1, 2]
    for attempt in view.attempts:
        assert (attempt.host_id, attempt.device_id, attempt.outcome) == ("lab-3", "slot-9", "expired")
        assert attempt.lease_id == f"{view.id}.{attempt.number}.{attempt.fencing}"
        assert attempt.ended_at is not None
        assert attempt.assigned_at < attempt.ended_at
        assert attempt.reason == "no worker of the host took it in time"
    assert view.attempts[0].fencing < view.attempts[1].fencing


async def expired_at_the_limit(lab: Lab) -> tuple[Toolcrib, str]:
    """Return a task whose only attempt has expired."""
    crib = await lab.pool(**QUICK, max_attempts=1)
    await lab.register_only()
    task = await crib.submit("echo")
    with pytest.raises(TaskFailed) as caught:
        await task.result()
    assert caught.value.error_code == "lease_expired"
    return crib, task.id


async def test_s1_55_at_the_limit_it_fails(lab: Lab) -> None:
    """When the last attempt has expired the task is failed."""
    crib, task_id = await expired_at_the_limit(lab)
    assert (await crib.task(task_id).status()).status == "failed"


async def test_s1_56_the_reason_is_the_lease(lab: Lab) -> None:
    """The error of such a task says that its lease expired, where, and why."""
    crib, task_id = await expired_at_the_limit(lab)
    error = (await crib.task(task_id).status()).error
    assert error is not None
    assert error.code == "lease_expired"
    assert error.message == "attempt 1 of 1 on lab-1/slot-1 expired: no worker of the host took it in time"


async def test_s1_57_its_device_is_released(lab: Lab) -> None:
    """The device of a task that failed so is nobody's, and idle again when it has rested."""
    crib, _ = await expired_at_the_limit(lab)
    pool = await until_pool(crib, lambda pool: pool.leased == 0)
    assert [device.state for device in pool.devices] == ["resting"]
    await until_pool(crib, lambda pool: [device.state for device in pool.devices] == ["idle"])


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_s1_58_the_limit_is_configurable(lab: Lab, limit: int) -> None:
    """A task makes as many attempts as its pool allows, or as it was submitted with."""
    crib = await lab.pool(**QUICK, max_attempts=limit)
    await lab.register_only(devices=[slot("a"), slot("b")])
    by_pool, by_task = await crib.submit("echo 1"), await crib.submit("echo 2", max_attempts=4 - limit)
    assert len((await until_status(by_pool, "failed")).attempts) == limit
    assert len((await until_status(by_task, "failed")).attempts) == 4 - limit

"""Assignment strategies by name. Rows S1-24 to S1-31."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from support.lab import Lab, eventually, slot, until_status
from support.last_device import LAST_DEVICE, LastDevice
from toolcrib.client import Toolcrib, UnknownPool, UnknownStrategy
from toolcrib.scheduling import scheduler
from toolcrib.scheduling.strategies import STRATEGIES
from toolcrib.worker.scheduler_role import scheduler_role


async def test_s1_24_an_unknown_strategy_is_an_error_at_once(lab: Lab) -> None:
    """A pool cannot be created or configured with a strategy that nobody registered; known ones are listed."""
    with pytest.raises(UnknownStrategy, match=r"no assignment strategy 'bogus' is registered; known: .*fifo_match"):
        await lab.pool("other", strategy="bogus")
    with pytest.raises(UnknownPool):
        await Toolcrib(lab.client, pool="other").pool().show()
    crib = await lab.pool()
    with pytest.raises(UnknownStrategy):
        await crib.pool().configure(strategy="bogus")


async def test_s1_24_a_scheduler_without_a_pools_strategy_does_not_start(lab: Lab) -> None:
    """A scheduler that lacks the strategy of a pool refuses to start."""
    await lab.pool(strategy=LAST_DEVICE)
    await _until_listed(lab)
    kept = STRATEGIES._strategies.pop(LAST_DEVICE)
    try:
        with pytest.raises(UnknownStrategy, match="pool 'lab' is configured with the strategy 'last_device'"):
            async with scheduler_role(lab.client):
                pass
    finally:
        STRATEGIES._strategies[LAST_DEVICE] = kept


async def test_s1_25_there_is_no_fallback(lab: Lab) -> None:
    """After a refused change the pool goes on with the strategy it has; none is put in its place."""
    crib = await lab.pool(strategy="priority_fifo")
    with pytest.raises(UnknownStrategy):
        await crib.pool().configure(strategy="bogus")
    assert (await crib.pool().show()).strategy == "priority_fifo"


async def test_s1_26_a_registry_maps_names_to_strategies(lab: Lab) -> None:
    """What is registered under a name is found under it, and the scheduler lists it."""
    assert isinstance(STRATEGIES.get(LAST_DEVICE), LastDevice)
    assert await lab.crib.strategies() == STRATEGIES.names()


async def test_s1_27_the_default_is_fifo_match(lab: Lab) -> None:
    """A pool that nobody configured uses fifo_match."""
    assert (await lab.crib.pool("default").show()).strategy == "fifo_match"


async def test_s1_28_first_come_first_served(lab: Lab) -> None:
    """With A submitted before B and one device, A gets it and B stays queued."""
    crib = await lab.pool()
    a, b = await crib.submit("echo a"), await crib.submit("echo b")
    await lab.register_only()
    await until_status(a, "assigned")
    assert (await b.status()).status == "queued"


async def test_s1_29_the_oldest_that_matches_is_served(lab: Lab) -> None:
    """A head of the queue that nothing fits does not keep the one behind it from its device."""
    crib = await lab.pool()
    blocked, fitting = await crib.submit("echo a", tags=["gpu"]), await crib.submit("echo b")
    await lab.register_only()
    await until_status(fitting, "assigned")
    assert (await blocked.status()).status == "queued"


async def test_s1_30_the_first_matching_device_is_given(lab: Lab) -> None:
    """Of two idle devices that fit, the one registered first is given."""
    crib = await lab.pool()
    await lab.register_only(devices=[slot("z"), slot("a")])
    assert (await until_status(await crib.submit("echo"), "assigned")).device_id == "z"


async def test_s1_31_a_new_strategy_is_registered_and_named(lab: Lab) -> None:
    """A strategy in a module of its own serves a pool by its name alone; the scheduler's code knows no strategy."""
    crib = await lab.pool()
    await crib.pool().configure(strategy=LAST_DEVICE)
    await lab.register_only(devices=[slot("a"), slot("b")])
    assert (await until_status(await crib.submit("echo"), "assigned")).device_id == "b"
    source = inspect.getsource(scheduler)
    assert not [name for name in STRATEGIES.names() if name in source]


def test_s1_31_a_worker_loads_it_by_its_module() -> None:
    """`--plugin` is all that a process needs to know of a new strategy."""
    program = (
        "from toolcrib.worker.plugins import load_plugins; load_plugins(['support.last_device']);"
        "from toolcrib.scheduling.strategies import STRATEGIES; print(STRATEGIES.names())"
    )
    path = ":".join(sys.path)
    found = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert "last_device" in found.stdout


async def _until_listed(lab: Lab) -> None:
    """Wait until Temporal lists the pool, which it does a moment after it was created."""
    query = "WorkflowId = 'toolcrib-pool-lab'"
    await eventually(lambda: lab.client.count_workflows(query), lambda found: found.count == 1)

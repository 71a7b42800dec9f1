"""An application's works: how they are registered, called and told to stop."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from support.guarded import until
from support.leases import lease_context
from toolcrib.activities.context import LeaseContext, RunFailed
from toolcrib.activities.guard import Guard
from toolcrib.activities.runners.works import WorkContext, Works
from toolcrib.scheduling.errors import InvalidRequest


@pytest.fixture
def lease(tmp_path: Path) -> LeaseContext:
    """The context of a lease of device `host/slot-1`."""
    return lease_context(cast("Guard", None), tmp_path)


def works(**functions: Any) -> Works:
    """Return works of these names."""
    found = Works()
    for name, function in functions.items():
        found.add(name, function)
    return found


async def add(a: int, b: int = 1) -> int:
    """Be an async work."""
    return a + b


def multiply(a: int, **others: int) -> list[Any]:
    """Be one that is not, with whatever inputs."""
    return [a, others]


@pytest.mark.parametrize(
    ("work", "inputs", "result"),
    [
        ("add", {"a": 2}, 3),
        ("add", {"a": 2, "b": 3}, 5),
        ("multiply", {"a": 2, "context": 3}, [2, {"context": 3}]),
    ],
)
async def test_inputs_go_by_name(lease: LeaseContext, work: str, inputs: dict[str, Any], result: Any) -> None:
    """One named `context` is an input like others where the function has no such parameter."""
    assert await works(add=add, multiply=multiply).run(work, inputs, lease) == result


@pytest.mark.parametrize(
    ("work", "inputs", "message"),
    [
        ("add", {}, "the inputs of work 'add' do not fit: missing a required argument: 'a'"),
        ("add", {"a": 1, "c": 2}, "the inputs of work 'add' do not fit: got an unexpected keyword argument 'c'"),
        ("divide", {}, "host host has no work 'divide'"),
    ],
)
async def test_inputs_that_do_not_fit_fail(
    lease: LeaseContext, work: str, inputs: dict[str, Any], message: str
) -> None:
    """So does a work that is not there; it is the task's fault, and final."""
    with pytest.raises(RunFailed) as caught:
        await works(add=add).run(work, inputs, lease)
    assert caught.value.message == message


async def test_a_function_that_is_not_async_may_use_asyncio(lease: LeaseContext) -> None:
    """It runs in a thread that has no event loop."""
    assert await works(run=lambda: asyncio.run(add(1))).run("run", {}, lease) == 2


async def test_one_that_is_cancelled_is_waited_for(lease: LeaseContext) -> None:
    """It sees that it is to stop, and may take its time, however often it is cancelled: so it keeps its slot."""
    begun, gate = threading.Event(), threading.Event()
    seen: list[bool] = []

    def stay(context: WorkContext) -> str:
        begun.set()
        gate.wait()
        seen.append(context.cancelled)
        with pytest.raises(asyncio.CancelledError):
            context.progress(0.5)
        return "never mind"

    running = asyncio.create_task(works(stay=stay).run("stay", {}, lease))
    await asyncio.to_thread(begun.wait)
    for _ in range(3):
        running.cancel()
        await asyncio.wait({running}, timeout=0.05)
        assert not running.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert seen == [True]


def test_slots_are_tagged_with_the_works() -> None:
    """In an order that does not depend on that of their registration."""
    assert works(b=add, a=add).tags == works(a=add, b=add).tags == ("work:a", "work:b")


def test_what_has_no_known_parameters_is_refused() -> None:
    """When it is registered, not when it is called."""
    with pytest.raises(InvalidRequest, match="work: 'x' is not a function whose parameters are known"):
        works(x=5)


async def test_a_work_adds_lines_to_its_log(lease: LeaseContext, tmp_path: Path) -> None:
    """From the thread that it runs in; it never waits for that."""

    def talk(context: WorkContext) -> None:
        context.log("one")
        context.log("zwei é")

    await works(talk=talk).run("talk", {}, lease)
    await until(lambda: (tmp_path / "log").read_text() == "one\nzwei é\n")

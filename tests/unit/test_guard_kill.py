"""However a work tries to stay, its whole tree ends with it."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from support.guarded import Lab, children, running_lab
from toolcrib.activities.guard import GuardLost, boottime

STUBBORN = {
    "ignores TERM, with children": ("trap '' TERM INT HUP; sleep 300 & sleep 300 & echo up >&3; wait; sleep 300", 1),
    "in a session of its own": ("""setsid sh -c 'trap "" TERM; echo up >&3; sleep 300' & echo up >&3; wait""", 2),
    "forked twice": ("""(setsid sh -c 'trap "" TERM; echo up >&3; sleep 300' &) & echo up >&3; wait; sleep 300""", 2),
    "stopped": ("trap '' TERM; echo up >&3; kill -STOP $$; sleep 300", 1),
    "forks without end": ("""trap '' TERM; f() { echo up >&3; g & }; g() { g & }; f; sleep 300""", 1),
}


@pytest.mark.parametrize("kind", STUBBORN)
async def test_kill_ends_the_whole_tree(kind: str) -> None:
    """When `kill` returns no process of the work is left, not later than the grace and about a second."""
    script, ups = STUBBORN[kind]
    async with running_lab() as lab:
        work = await lab.script(script, ups=ups)
        began = time.monotonic()
        await work.kill(grace=0.3)
        assert time.monotonic() - began < 1.5
        assert lab.left() == []


async def test_grace_is_given() -> None:
    """A work that cleans up on SIGTERM is left to do so, and ends as soon as it is done."""
    async with running_lab() as lab:
        work = await lab.script("trap 'sleep 0.2; exit 5' TERM; echo up >&3; while :; do sleep 0.05; done")
        began = time.monotonic()
        await work.kill(grace=30)
        assert await work.wait() == 5
        assert 0.2 <= time.monotonic() - began < 10


async def test_stopped_work_gets_to_clean_up() -> None:
    """A work that is stopped is continued, so that it sees the SIGTERM."""
    async with running_lab() as lab:
        work = await lab.script("trap 'exit 6' TERM; echo up >&3; kill -STOP $$; sleep 300")
        await work.kill(grace=30)
        assert await work.wait() == 6


@pytest.mark.parametrize("ignoring", ["", 'trap "" TERM; '])
async def test_leftovers_end_with_the_command(ignoring: str) -> None:
    """A command that ends by itself is reported when what it left behind is gone too, with its own exit code."""
    async with running_lab() as lab:
        # the substitution ends when the daemon has set its trap and lets go of its output
        script = f": $(setsid sh -c '{ignoring}exec >/dev/null; sleep 300' & ); exit 4"
        work = await lab.start("/bin/sh", "-c", script)
        assert await work.wait() == 4
        assert lab.left() == []


async def test_kill_of_an_ended_work_returns() -> None:
    """Killing a work that has ended already does nothing, at once."""
    async with running_lab() as lab:
        work = await lab.start("true")
        await work.wait()
        await work.kill(grace=30)
        assert await work.wait() == 0


async def test_a_second_kill_can_only_hasten() -> None:
    """Killing with less grace while a kill is under way ends the work after the shorter of the two."""
    async with running_lab() as lab:
        work = await lab.script("trap '' TERM; echo up >&3; while :; do sleep 1; done")
        first = asyncio.create_task(work.kill(grace=60))
        await asyncio.sleep(0)
        began = time.monotonic()
        await work.kill(grace=0)
        await first
        assert time.monotonic() - began < 10


async def test_deadline_kills() -> None:
    """Past its deadline the whole tree of a work is killed, although nobody asks."""
    async with running_lab() as lab:
        script = "trap '' TERM; setsid sleep 300 & echo up >&3; while :; do sleep 300; done"
        work = await lab.script(script, deadline=boottime() + 0.5)
        assert await work.wait() == -9
        assert lab.left() == []


async def test_extend_moves_the_deadline_of_every_work_of_the_lease() -> None:
    """`extend` moves the deadline of all works of that lease, forward or backward, and of no other lease."""
    async with running_lab() as lab:
        soon, far = boottime() + 1.0, boottime() + 300
        mine = [await lab.start("sleep", "300", lease="mine", deadline=soon) for _ in range(2)]
        other = await lab.start("sleep", "300", lease="other", deadline=soon)
        lab.guard.extend("mine", far)
        assert await other.wait() == -9
        assert not any(work.ended.done() for work in mine)
        lab.guard.extend("mine", boottime())
        assert [await work.wait() for work in mine] == [-9, -9]


async def test_a_later_work_inherits_the_deadline_of_its_lease() -> None:
    """A work started without a deadline has the one that was last set for its lease, until the lease is forgotten."""
    async with running_lab() as lab:
        lab.guard.extend("lease", boottime() - 1)
        assert await (await lab.start("sleep", "300")).wait() == -9
        lab.guard.forget("lease")
        assert await (await lab.start("true")).wait() == 0


async def test_cancelled_spawn_leaves_nothing() -> None:
    """A spawn that is cancelled half-way returns when nothing of the work is left."""
    async with running_lab() as lab:
        for turns in range(8):
            spawning = asyncio.create_task(lab.start("sleep", "300"))
            for _ in range(turns):
                await asyncio.sleep(0)
            if not spawning.cancel():  # it was quicker
                await spawning.result().kill(grace=0)
            await asyncio.wait([spawning])
            assert lab.left() == []


async def test_killed_keeper_loses_nothing() -> None:
    """When a keeper is killed, the guard ends what is left of its work, and of no other, and serves on."""
    async with running_lab() as lab:
        work = await lab.script("""setsid sh -c 'trap "" TERM; echo up >&3; sleep 300' & echo up >&3; wait""", ups=2)
        (keeper,) = children(lab.guard.pid)
        other = Lab(lab.guard)
        spared = await other.script("echo up >&3; sleep 300")
        os.kill(keeper, signal.SIGKILL)
        with pytest.raises(GuardLost, match="died, its work was killed"):
            await work.wait()
        assert lab.left() == []
        assert spared.pid in other.left()
        assert await (await lab.start("true")).wait() == 0


async def test_work_that_kills_its_keeper_is_ended() -> None:
    """A work that kills its own parent, however early, gains nothing."""
    async with running_lab() as lab:
        with pytest.raises(GuardLost, match="died, its work was killed"):
            await (await lab.start("/bin/sh", "-c", "setsid sleep 300 & kill -KILL $PPID; sleep 300")).wait()
        assert lab.left() == []

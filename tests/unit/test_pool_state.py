"""A pool's state is carried from version to version."""

from __future__ import annotations

import json
import zlib
from typing import Any

from support.rules import START, busy_pool, holders, lapsed
from toolcrib.scheduling.device import DeviceState
from toolcrib.scheduling.pool import SCHEMA, dump_state, load_state
from toolcrib.scheduling.scheduler import TaskScheduler

SINCE_2 = ("failures", "fault", "rests_until", "quarantine", "avoids")


def as_of_1(data: bytes) -> bytes:
    """Return a state as version 1 of the schema has it."""
    state = json.loads(zlib.decompress(data), object_hook=_without_what_is_new)
    return zlib.compress(json.dumps({**state, "schema": 1}).encode())


def _without_what_is_new(part: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in SINCE_2}


def test_what_an_earlier_version_wrote_is_loaded() -> None:
    """Nothing has failed then, nobody avoids anything, and the pool goes on."""
    before = busy_pool()
    old = as_of_1(dump_state(before.state))
    state = load_state(old)
    assert state == before.state
    assert state.schema == SCHEMA
    scheduler = TaskScheduler(state)
    scheduler.settle([lapsed(scheduler.held[0])], START)
    assert scheduler.devices[0].state is DeviceState.RESTING
    scheduler.assign(START + 10)
    assert holders(scheduler) == {"t1": "d"}


def test_all_that_is_known_of_devices_is_carried_over() -> None:
    """A device that rests, rests on in the next run of the pool, until the same time."""
    scheduler = busy_pool()
    scheduler.settle([lapsed(scheduler.held[0])], START)
    again = TaskScheduler(load_state(dump_state(scheduler.state)))
    assert again.devices == scheduler.devices
    assert again.next_wake() == START + 10

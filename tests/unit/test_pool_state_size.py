"""A pool's state has to fit into one Temporal payload of 2 MiB: passing that limit kills the pool."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest

from support.rules import START, device, entry, pool, register, settlement
from toolcrib.scheduling.config import MAX_QUEUE_DEPTH
from toolcrib.scheduling.constraints import MAX_TAG_LENGTH, MAX_TAGS
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.health import MAX_REASON_LENGTH
from toolcrib.scheduling.messages import DeviceOrder, HostOrder, SettleKind
from toolcrib.scheduling.pool import dump_state, load_state
from toolcrib.scheduling.registration import MAX_DEVICES_WEIGHT
from toolcrib.scheduling.scheduler import TaskScheduler

LIMIT = 1_900_000

Dice = Random
Words = Callable[[Dice], str]


def key(dice: Dice) -> str:
    """Return the id of a task with a random key of the greatest length."""
    return "task-" + "".join(dice.choices(string.ascii_letters + string.digits + "._-", k=200))


def default_id(dice: Dice) -> str:
    """Return an id as submissions get it: a time that is much the same, and random bits."""
    rest = f"{dice.getrandbits(72):018x}"
    return f"task-0193{dice.getrandbits(16):04x}-{rest[:4]}-7{rest[4:7]}-{rest[4:8]}-{rest[6:]}"


def tag_of(low: int, high: int, length: int) -> Words:
    """Return a maker of tags of random printable characters between two code points."""
    letters = [chr(code) for code in range(low, high) if chr(code).isprintable() and not chr(code).isspace()]
    return lambda dice: unicodedata.normalize("NFC", "".join(dice.choices(letters, k=length)))[:MAX_TAG_LENGTH]


ASCII, SHORT_ASCII = tag_of(0x21, 0x7F, MAX_TAG_LENGTH), tag_of(0x21, 0x7F, 8)
RARE_HAN = tag_of(0x20000, 0x2A6D0, 40)


def full_of_devices(dice: Dice, tag: Words, count: int) -> TaskScheduler:
    """Return a pool with so many devices, all leased, whose descriptions take all the room that they may take."""
    room = (MAX_DEVICES_WEIGHT - 500) // count - 150
    specs: list[DeviceSpec] = []
    for number in range(count):
        tags: list[str] = []
        while len(tags) < MAX_TAGS and sum(len(text.encode()) for text in tags) < room - 4 * MAX_TAG_LENGTH:
            tags.append(tag(dice))
        specs.append(device(f"device-{number}", *sorted(tags)))
    scheduler = pool(max_queue_depth=MAX_QUEUE_DEPTH)
    register(scheduler, "h", specs, START)
    for spec in specs:
        scheduler.admit([entry(key(dice), *spec.tags, device_id=spec.id)], START + dice.random())
    assert len(scheduler.held) == count
    return scheduler


def fill(scheduler: TaskScheduler, dice: Dice, name: Words, tags: Callable[[Dice], list[str]]) -> str:
    """Admit tasks until one is refused, and return how."""
    now = START + 1
    while True:
        now += dice.random() / 50
        answer = scheduler.admit([entry(name(dice), *sorted(set(tags(dice))))], now)[0]
        if answer.refused is not None:
            return answer.refused.message


def test_a_queue_at_its_greatest_depth_fits() -> None:
    """Twenty thousand ordinary tasks are queued beside a hundred running ones, and none is refused before."""
    dice = Random(7)
    scheduler = full_of_devices(dice, ASCII, 100)
    assert fill(scheduler, dice, default_id, lambda _: []).endswith("has 20000 queued tasks, its limit is 20000")
    data = dump_state(scheduler.state)
    assert len(data) < LIMIT
    assert load_state(data) == scheduler.state


@pytest.mark.parametrize(
    ("name", "tag", "each", "devices"),
    [
        pytest.param(key, ASCII, 0, 100, id="long keys"),
        pytest.param(key, SHORT_ASCII, 1, 600, id="long keys and many devices"),
        pytest.param(default_id, SHORT_ASCII, 8, 100, id="short tags"),
        pytest.param(default_id, ASCII, 1, 100, id="long tags"),
        pytest.param(default_id, ASCII, MAX_TAGS, 100, id="many long tags"),
        pytest.param(default_id, RARE_HAN, 8, 100, id="tags of four bytes a letter"),
    ],
)
def test_the_worst_queue_fits_or_is_refused(name: Words, tag: Words, each: int, devices: int) -> None:
    """Long random ids and demands of which no two are alike are refused before the state grows too large."""
    dice = Random(7)
    scheduler = full_of_devices(dice, tag, devices)
    assert fill(scheduler, dice, name, lambda dice: [tag(dice) for _ in range(each)])
    assert len(dump_state(scheduler.state)) < LIMIT
    returning = [
        settlement(SettleKind.REQUEUE, lease, entry(lease.task_id, lease.task_id[:100], known=True))
        for lease in scheduler.held
    ]
    scheduler.settle(returning, START + 999)
    assert len(dump_state(scheduler.state)) < LIMIT


@pytest.mark.parametrize("tag", [ASCII, RARE_HAN], ids=["ASCII", "four bytes a letter"])
def test_a_full_pool_in_which_everything_is_broken_fits(tag: Words) -> None:
    """As many devices as it may have, each quarantined for a long reason of its own, and a queue that is full."""
    dice = Random(7)
    scheduler = pool(max_queue_depth=MAX_QUEUE_DEPTH)
    register(scheduler, "h", [device(f"d{n}") for n in range(1_400)], START)
    for one in scheduler.devices:
        reason = (tag(dice) + tag(dice) + tag(dice))[:MAX_REASON_LENGTH]
        scheduler.order(DeviceOrder(key=one.key, kind="quarantine", reason=reason), START)
    fill(scheduler, dice, key, lambda _: [])
    assert len(dump_state(scheduler.state)) < 2 * 1024 * 1024


def test_tasks_that_failed_everywhere_fit_or_are_refused() -> None:
    """What tasks avoid is counted as part of their place in the queue."""
    dice = Random(7)
    scheduler = pool(*(device("".join(dice.choices(string.ascii_letters, k=64))) for _ in range(900)))
    scheduler.order(HostOrder(host_id="h", kind="drain"), START)
    scheduler.configure(scheduler.config.changed({"max_queue_depth": MAX_QUEUE_DEPTH}), START)
    keys, refused = [one.key for one in scheduler.devices], None
    while refused is None:
        (answer,) = scheduler.admit([entry(default_id(dice), avoids=tuple(dice.choices(keys, k=5)))], START)
        refused = answer.refused
    assert len(dump_state(scheduler.state)) < LIMIT


def test_a_pool_refuses_devices_that_it_cannot_carry() -> None:
    """A host too many is refused as a whole, by name and with the limit; what was there stays."""
    scheduler = pool()
    with pytest.raises(InvalidRequest, match=r"^devices of host 'h': pool 'default' would hold 6\d\d,\d{3} bytes"):
        register(scheduler, "h", [device(f"d{n}") for n in range(5_000)], START)
    register(scheduler, "h", [device(f"d{n}") for n in range(1_000)], START)
    with pytest.raises(InvalidRequest, match=r"limit is 200,000$"):
        register(scheduler, "h2", [device(f"d{n}") for n in range(1_000)], START)
    assert len(scheduler.devices) == 1_000


def test_hosts_without_devices_take_room_too() -> None:
    """Hosts that come, go and never come back cannot make the state grow without end."""
    scheduler, number = pool(), 0
    with suppress(InvalidRequest):
        while number < 5_000:
            register(scheduler, f"host-{number}", [], START)
            number += 1
    assert number < 5_000
    assert len(dump_state(scheduler.state)) < LIMIT


def test_a_full_queue_says_what_is_full() -> None:
    """A queue refused for its weight says so; it is not its depth."""
    dice = Random(7)
    scheduler = pool(max_queue_depth=MAX_QUEUE_DEPTH)
    message = fill(scheduler, dice, key, lambda _: [])
    assert message == "the queue of pool 'default' takes more than 1,600,000 bytes"
    known = scheduler.admit([entry("one-more", known=True)], START)[0]
    assert known.refused is None

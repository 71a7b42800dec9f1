"""Which device a task gets, and when. Rows S1-13 to S1-23."""

from __future__ import annotations

from support.lab import Lab, slot, until, until_pool, until_status
from support.last_device import LAST_DEVICE


async def test_s1_13_only_idle_devices_are_chosen(lab: Lab) -> None:
    """With one device busy and one idle, the idle one is chosen."""
    crib = await lab.pool()
    await lab.register_only(devices=[slot("a"), slot("b")])
    busy = await until_status(await crib.submit("echo 1"), "assigned")
    other = await until_status(await crib.submit("echo 2"), "assigned")
    assert (busy.device_id, other.device_id) == ("a", "b")


async def test_s1_14_the_driver_type_matches(lab: Lab) -> None:
    """A task gets a device of the driver type it asked for, not the first idle one."""
    crib = await lab.pool()
    await lab.register_only(devices=[slot("a", driver_type="browser"), slot("b", driver_type="adb")])
    view = await until_status(await crib.submit("echo", driver_type="adb"), "assigned")
    assert view.device_id == "b"


async def test_s1_15_all_tags_are_there(lab: Lab) -> None:
    """A device with some of the tags is never used."""
    crib = await lab.pool()
    await lab.register_only(devices=[slot("a", tags=["usb"]), slot("b", tags=["usb", "arm"])])
    both = await until_status(await crib.submit("echo", tags=["arm", "usb"]), "assigned")
    none = await crib.submit("echo", tags=["usb", "x86"])
    assert both.device_id == "b"
    assert (await none.status()).status == "queued"


async def test_s1_16_without_constraints_any_device_will_do(lab: Lab) -> None:
    """A task that asks for nothing gets whatever is idle."""
    crib = await lab.pool()
    await lab.register_only(devices=[slot("odd", driver_type="licence", tags=["rare"])])
    assert (await until_status(await crib.submit("echo"), "assigned")).device_id == "odd"


async def test_s1_17_the_configured_strategy_decides(lab: Lab) -> None:
    """A strategy of a third party, named in the pool's settings, picks the device."""
    crib = await lab.pool(strategy=LAST_DEVICE)
    await lab.register_only(devices=[slot("a"), slot("b"), slot("c")])
    assert (await until_status(await crib.submit("echo"), "assigned")).device_id == "c"


async def test_s1_18_a_match_makes_it_assigned(lab: Lab) -> None:
    """Once it has a device that its host has not claimed, a task is assigned."""
    crib = await lab.pool()
    task = await crib.submit("echo")
    assert (await task.status()).status == "queued"
    await lab.register_only()
    await until_status(task, "assigned")


async def test_s1_19_device_and_host_are_on_the_task(lab: Lab) -> None:
    """An assigned task tells its device and host."""
    crib = await lab.pool()
    await lab.register_only("lab-7", [slot("slot-3")])
    view = await until_status(await crib.submit("echo"), "assigned")
    assert (view.host_id, view.device_id) == ("lab-7", "slot-3")


async def test_s1_20_exactly_one_device_is_reserved(lab: Lab) -> None:
    """One task reserves one of several devices that fit."""
    crib = await lab.pool()
    await lab.register_only(devices=[slot("a"), slot("b"), slot("c")])
    task = await crib.submit("echo")
    pool = await crib.pool().show()
    assert [device.task_id for device in pool.devices] == [task.id, None, None]
    assert (pool.leased, pool.queued) == (1, 0)


async def test_s1_21_without_a_match_it_stays_queued(lab: Lab) -> None:
    """A task that nothing fits is not failed; it says why it waits, also after the pool has decided anew."""
    crib = await lab.pool()
    await lab.register_only(devices=[slot("a", tags=["Linux"])])
    task = await crib.submit("echo", tags=["linux"])
    for _ in range(3):
        await crib.pool().assign()
    view = await task.status()
    assert view.status == "queued"
    assert view.pending_reason is not None
    assert view.pending_reason.code == "no_such_device"
    assert "did you mean Linux?" in view.pending_reason.text


async def test_s1_22_deciding_without_a_match_is_no_error(lab: Lab) -> None:
    """Having the pool decide grants nothing when nothing fits, and raises nothing."""
    crib = await lab.pool()
    await crib.submit("echo")
    assert await crib.pool().assign() == 0


async def test_s1_23_it_is_tried_again_when_a_device_appears(lab: Lab) -> None:
    """A waiting task runs as soon as a host with a fitting device comes, without being submitted again."""
    crib = await lab.pool()
    task = await crib.submit("echo hello", tags=["usb"])
    await until_pool(crib, lambda pool: pool.queued == 1)
    async with lab.host(devices=[slot(tags=["usb"])]):
        assert (await task.result())["output"] == "hello\n"
    ended = await until(task, lambda view: view.ended)
    assert ended.attempt == 1

"""What the Python client makes of arguments of another kind than it takes; nothing is sent for any of them."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.client import Client

from toolcrib.client import Group, InvalidRequest, TaskRequest, Toolcrib, UnknownTask

NOWHERE = "127.0.0.1:1"


async def _crib() -> Toolcrib:
    return Toolcrib(await Client.connect(NOWHERE, lazy=True))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"group": 7}, "group"),
        ({"group": {"id": "nightly"}}, "group"),
        ({"group": ""}, "group_id"),
        ({"group": Group(7)}, "group_id"),  # type: ignore[arg-type]
        ({"tags": 7}, "tags"),
        ({"key": 7}, "key"),
        ({"pool": 7}, "pool"),
        ({"host_id": b"lab-1"}, "host_id"),
        ({"timeout": "30s"}, "timeout"),
    ],
)
async def test_an_argument_of_another_kind_is_named(given: dict[str, Any], field: str) -> None:
    """It is refused as a field of the request, whatever it is."""
    crib = await _crib()
    with pytest.raises(InvalidRequest, match=f"^{field}: "):
        await crib.submit("echo hello", **given)


@pytest.mark.parametrize("request_", [{"goal": "echo hello"}, "echo hello", None])
async def test_one_of_many_requests_that_is_none_is_named(request_: Any) -> None:
    """By its number, and none of the others is submitted."""
    crib = await _crib()
    with pytest.raises(InvalidRequest, match=r"^requests\[1\]: ") as caught:
        await crib.submit_many([TaskRequest(goal="echo hello"), request_])
    assert "TaskRequest(" in (caught.value.hint or "")


async def test_a_group_may_be_given_by_its_id() -> None:
    """Wherever a group is asked for, its id will do."""
    crib = await _crib()
    by_id, by_group = crib.external("a", group="nightly"), crib.external("a", group=Group("nightly"))
    assert by_id._request == by_group._request
    assert crib.group(Group("nightly")).id == crib.group("nightly").id == "nightly"
    with pytest.raises(InvalidRequest, match=r"^group: 7 is neither"):
        crib.external("a", group=7)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match=r"^group: 7 is neither"):
        crib.group(7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "field"), [({"group": 7}, "group"), ({"status": "runing"}, "status"), ({"state": "done"}, "state")]
)
async def test_a_condition_that_no_task_can_meet_is_refused(given: dict[str, Any], field: str) -> None:
    """Instead of an empty list, which would tell something else."""
    crib = await _crib()
    with pytest.raises(InvalidRequest, match=f"^{field}: "):
        await crib.tasks(**given)


async def test_whatever_is_no_id_is_no_task() -> None:
    """A handle on it is refused by name."""
    crib = await _crib()
    for task_id in (7, None, ""):
        with pytest.raises(UnknownTask):
            crib.task(task_id)  # type: ignore[arg-type]

"""`toolcrib submit`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolcrib.client.cli.command import command, new_app
from toolcrib.client.cli.follow import raise_unless_done, tell_outcome, until_ended
from toolcrib.client.cli.inputs import read_goal, read_inputs
from toolcrib.client.cli.options import GroupId, Pool, seconds
from toolcrib.client.cli.output import note, say, say_view
from toolcrib.client.cli.session import Session, audible
from toolcrib.scheduling.errors import InvalidRequest, ToolcribError

if TYPE_CHECKING:
    from toolcrib.client import Group, TaskHandle

app = new_app()

Goal = Annotated[
    str | None, typer.Argument(metavar="GOAL|-", help="What to do; -: on standard input.", show_default=False)
]
Workflow = Annotated[str | None, typer.Option(metavar="NAME[@VERSION]", help="A workflow, in place of a goal.")]
Input = Annotated[list[str] | None, typer.Option("--input", metavar="K=V", help="An input, as text; repeatable.")]
Inputs = Annotated[str | None, typer.Option(metavar="JSON|@FILE", help="Inputs, as a JSON object.")]
Name = Annotated[str | None, typer.Option(metavar="TEXT", help="What the task is called in lists.")]
DriverType = Annotated[str | None, typer.Option(metavar="TYPE", help="The kind of device it needs.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="T", help="A tag the device must have; repeatable.")]
DeviceId = Annotated[str | None, typer.Option(metavar="ID", help="The device it needs.")]
HostId = Annotated[str | None, typer.Option(metavar="ID", help="The host it needs.")]
Priority = Annotated[int, typer.Option(metavar="1-5", help="1 is served first, by strategies that look at it.")]
GroupName = Annotated[str | None, typer.Option(metavar="TEXT", help="What the group is called.")]
Key = Annotated[str | None, typer.Option(metavar="KEY", help="Submitted twice with one key, it is one task.")]
TimeLimit = Annotated[
    str | None, typer.Option("--timeout", metavar="DURATION", help="How long an attempt may run, as 30s or 1h30m.")
]
QueueTimeout = Annotated[str | None, typer.Option(metavar="DURATION", help="How long it may wait for a device.")]
MaxAttempts = Annotated[int | None, typer.Option(metavar="N", help="Attempts when leases expire.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for its end; exit 0 done, 5 failed, 6 cancelled.")]

_EXAMPLES = [
    "toolcrib submit 'echo hello' --wait",
    "toolcrib submit 'pytest -q' --tag linux --tag gpu --timeout 30m",
    "cat plan.txt | toolcrib submit -",
    "toolcrib submit --workflow login@2 --inputs @inputs.json --input user=ann",
]


@command(app, "submit", examples=_EXAMPLES)
async def submit(
    session: Session,
    goal: Goal = None,
    workflow: Workflow = None,
    input_pairs: Input = None,
    inputs: Inputs = None,
    name: Name = None,
    driver_type: DriverType = None,
    tags: Tags = None,
    device_id: DeviceId = None,
    host_id: HostId = None,
    priority: Priority = 3,
    pool: Pool = None,
    group: GroupId = None,
    group_name: GroupName = None,
    key: Key = None,
    time_limit: TimeLimit = None,
    queue_timeout: QueueTimeout = None,
    max_attempts: MaxAttempts = None,
    wait: Wait = False,
) -> None:
    """Submit a task and print its id.

    It waits for a device that fits, and runs there. Nothing is lost if this command is interrupted.
    """
    if (goal is None) == (workflow is None):
        raise InvalidRequest(
            f"goal, workflow: give exactly one of them; {'none' if goal is None else 'both'} were given",
            hint="Give a goal, or a workflow: toolcrib submit 'echo hello', or: toolcrib submit --workflow NAME",
        )
    request: dict[str, Any] = {
        "goal": read_goal(goal),
        "workflow": workflow,
        "inputs": read_inputs(inputs, input_pairs or ()) or None,
        "name": name,
        "driver_type": driver_type,
        "tags": tuple(tags or ()),
        "device_id": device_id,
        "host_id": host_id,
        "priority": priority,
        "pool": pool,
        "key": key,
        "timeout": seconds(time_limit, "timeout"),
        "queue_timeout": seconds(queue_timeout, "queue_timeout"),
        "max_attempts": max_attempts,
    }
    _note_commas(request["tags"])
    if group_name is not None and group is None:
        raise typer.BadParameter("needs --group ID beside it", param_hint="--group-name")
    async with session.client(pool) as crib:
        with audible("a scheduler"):
            handle = await crib.submit(**request, group=_group(group, group_name))
        await _answer(session, handle, wait)


async def _answer(session: Session, handle: TaskHandle, wait: bool) -> None:
    if not session.as_json:
        say(handle.id)
    if wait:
        await _wait(session, handle)
    elif session.as_json:
        await _say_state(handle)


async def _wait(session: Session, handle: TaskHandle) -> None:
    try:
        view = await until_ended(handle)
    except asyncio.CancelledError:
        note(f"detached: task {handle.id} goes on; see: toolcrib watch {handle.id}")
        raise
    if session.as_json:
        say_view(view)
    else:
        tell_outcome(view)
    raise_unless_done(view)


async def _say_state(handle: TaskHandle) -> None:
    try:
        say_view(await handle.status())
    except ToolcribError:
        note(f"submitted as {handle.id}, but its state cannot be read")
        raise


def _group(group_id: str | None, name: str | None) -> Group | None:
    if group_id is None:
        return None
    from toolcrib.client import Group

    return Group(id=group_id, name=name)


def _note_commas(tags: tuple[str, ...]) -> None:
    for tag in tags:
        if "," in tag:
            note(f"note: {tag!r} is one tag, tags are not split at commas; give --tag several times")

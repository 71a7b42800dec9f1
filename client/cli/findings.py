"""What `toolcrib doctor` finds of pools: what is wrong with them, and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from toolcrib.client.cli.format import instant, since
from toolcrib.scheduling.errors import ToolcribError

if TYPE_CHECKING:
    from toolcrib.scheduling.views import DeviceView, HostView, PoolView

MOST_NAMED: Final = 5
"""So many things of a kind are named; of more it is said how many there are."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: fine, worth a note, or a problem that keeps toolcrib from working."""

    name: str
    verdict: Literal["ok", "note", "problem"]
    text: str
    hint: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)

    @classmethod
    def refused(cls, name: str, error: ToolcribError) -> Check:
        """Return the problem that `error` is."""
        return cls(name, "problem", error.message, error.hint)


def judge_pool(view: PoolView, alive: Iterable[str] = ()) -> list[Check]:
    """Return what there is to say of a pool that answers: first of it as a whole, then what is noted in it.

    `alive` are the hosts that show that they live, and say that they belong to it.
    """
    return [_summary(view), *_of_strangers(view, alive), *_of_hosts(view), *_of_devices(view)]


def judge_strays(pool: str, *, tasks: int, hosts: Iterable[str], ended: bool) -> Check:
    """Return what there is to say of a pool that does not run, and that open tasks or hosts name."""
    names = list(hosts)
    who = [f"{tasks} open task{'s' if tasks > 1 else ''}"] * (tasks > 0) + [f"host {_listed(names)}"] * (len(names) > 0)
    what = "was ended" if ended else "does not exist"
    hint = f"Create it: toolcrib pool create {pool}; they come back by themselves within a minute"
    return Check(f"pool {pool}", "problem", f"it {what}, and {' and '.join(who)} need it", hint)


def _summary(view: PoolView) -> Check:
    name = f"pool {view.name}"
    states = Counter(device.state for device in view.devices)
    counted = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "no devices"
    text = f"{view.strategy}, {counted}, {view.queued} queued"
    if view.problem:
        hint = f"Correct the strategy, or choose another: toolcrib pool configure {view.name} --strategy NAME"
        return Check(name, "problem", f"grants nothing: {view.problem}", hint)
    if view.opens_at is not None and view.opens_at > datetime.now(UTC):
        hint = "It asks tasks and hosts for the leases that are out; what was out of service may be in service again"
        return Check(name, "note", f"{text}; rebuilt, gives out devices from {instant(view.opens_at)} on", hint)
    if not any(host.state == "online" for host in view.hosts):
        hint = "Start one: toolcrib worker --role host --config FILE"
        return Check(name, "problem" if view.queued else "note", f"{text}, no host online", hint)
    return Check(name, "ok", text)


def _of_strangers(view: PoolView, alive: Iterable[str]) -> Iterator[Check]:
    """Yield the hosts whose workers run and wait to be enrolled: a pool that was deleted has lost its hosts' keys."""
    known = [host.id for host in view.hosts]
    for host_id in alive:
        if host_id not in known:
            hint = f"As its log says: toolcrib host enroll {host_id} --pool {view.name} --public-key KEY"
            yield Check(f"host {host_id}", "problem", "its worker runs, and is not enrolled", hint)


def _of_hosts(view: PoolView) -> Iterator[Check]:
    for host in view.hosts:
        name = f"host {host.id}"
        if host.public_key is None:
            enroll = f"toolcrib host enroll {host.id} --pool {view.name} --public-key KEY"
            hint = f"Enroll it again, if it is to serve, with the key that its log names: {enroll}"
            yield Check(name, "note", "its key was revoked", hint)
        elif host.state == "offline":
            hint = "Start it there: toolcrib worker --role host --config FILE; if it runs, its log says what it lacks"
            yield Check(name, "note", _absence(host), hint)
        elif not host.in_service:
            hint = f"When it may serve again: toolcrib host resume {host.id} --pool {view.name}"
            yield Check(name, "note", "out of service", hint)


def _absence(host: HostView) -> str:
    if host.last_seen is None:
        return "enrolled, and has never registered"
    return f"offline; it registered {since(host.last_seen)} ago"


def _of_devices(view: PoolView) -> Iterator[Check]:
    """Yield what is said of devices that are kept from tasks, other than by their host's absence."""
    see = f"toolcrib device list --pool {view.name}"
    for state, hint in (
        ("quarantined", f"When it works again: toolcrib device resume KEY --pool {view.name}"),
        ("resting", f"Nothing to do; it is tried again by itself. See: {see}"),
        ("releasing", f"Nothing to do; it is free when its last work has ended. See: {see}"),
    ):
        devices = [device for device in view.devices if device.state == state]
        if devices:
            yield Check(_named(devices), "note", f"{state}: {_reasons(devices)}", hint)
    serving = [host.id for host in view.hosts if host.in_service]
    idle = [device for device in view.devices if device.state == "idle" and device.host_id in serving]
    drained = [device for device in idle if not device.in_service]
    if drained:
        hint = f"When it may serve again: toolcrib device resume KEY --pool {view.name}"
        yield Check(_named(drained), "note", "out of service", hint)


def _named(devices: list[DeviceView]) -> str:
    return f"device {_listed([device.key for device in devices])}"


def _reasons(devices: list[DeviceView]) -> str:
    said = [f"for {since(device.since)}, {device.reason or 'without a reason'}" for device in devices[:MOST_NAMED]]
    return "; ".join(dict.fromkeys(said))


def _listed(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")

"""Why a queued task waits, in words that help the person who waits."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, Literal

from toolcrib.scheduling.constraints import Constraints, is_reserved
from toolcrib.scheduling.device import DeviceState, PooledDevice
from toolcrib.scheduling.references import near, runs
from toolcrib.scheduling.views import PendingReason

MAX_FAULTS_SAID: Final = 3
"""Of the wishes that nobody meets, so many are named."""
MAX_COMPARED: Final = 100
"""So many of the texts on offer are searched for one that looks like what was asked."""

_Kept = Literal["all_busy", "resting", "quarantined", "offline"]
_KEPT_BY: Final[dict[DeviceState, tuple[_Kept, str]]] = {
    DeviceState.LEASED: ("all_busy", "busy"),
    DeviceState.RELEASING: ("all_busy", "busy"),
    DeviceState.RESTING: ("resting", "resting after failures"),
    DeviceState.QUARANTINED: ("quarantined", "quarantined"),
    DeviceState.OFFLINE: ("offline", "offline"),
}
"""What keeps a device from a task: reason and word. What passes by itself comes before what does not."""


def pending_reason(
    demand: Constraints,
    devices: Sequence[PooledDevice],
    outlook: Callable[[PooledDevice], DeviceState | None],
    *,
    below_cap: bool,
) -> PendingReason:
    """Return why a task with `demand` does not run now, given the pool's `devices` and the outlook of each."""
    fitting = [device for device in devices if demand.matches(device)]
    if not fitting:
        return PendingReason(code="no_such_device", text=_mismatch(demand, devices))
    only = _only_there(demand, fitting, devices)
    serving = [state for device in fitting if (state := outlook(device)) is not None]
    if not serving:
        return PendingReason(code="out_of_service", text=_said({"out of service": len(fitting)}) + only)
    if DeviceState.IDLE in serving:
        if not below_cap:
            return PendingReason(code="cap", text="the pool runs as many tasks at once as max_concurrent allows")
        return PendingReason(code="in_line", text="it waits for its turn")
    kept = [(code, word) for state, (code, word) in _KEPT_BY.items() for _ in range(serving.count(state))]
    return PendingReason(code=kept[0][0], text=_said(Counter(word for _, word in kept)) + only)


def _only_there(demand: Constraints, fitting: Sequence[PooledDevice], devices: Sequence[PooledDevice]) -> str:
    """Say which hosts have the workflow, if there are devices that would do but for that."""
    if demand.workflow is None or sum(map(replace(demand, workflow=None).matches, devices)) == len(fitting):
        return ""
    hosts = list(dict.fromkeys(device.host_id for device in fitting))
    named = ", ".join(hosts[:MAX_FAULTS_SAID]) + (" and others" if len(hosts) > MAX_FAULTS_SAID else "")
    return f"; only {named} can run {demand.workflow}"


def _said(counts: dict[str, int]) -> str:
    """Say of the devices that fit how many are in which condition."""
    total = sum(counts.values())
    if len(counts) > 1:
        return f"of the {total} devices that fit, " + ", ".join(f"{n} {word}" for word, n in counts.items())
    who = "the one device that fits" if total == 1 else f"each of the {total} devices that fit"
    return f"{who} is {next(iter(counts))}"


def _mismatch(demand: Constraints, devices: Sequence[PooledDevice]) -> str:
    """Say what nobody offers, and what is offered that looks like it."""
    if not devices:
        return "the pool has no devices yet"
    tags = [tag for device in devices for tag in device.tags]
    wishes = [
        ("driver type", demand.driver_type, [device.driver_type for device in devices]),
        ("host", demand.host_id, [device.host_id for device in devices]),
        ("device", demand.device_id, [device.device_id for device in devices]),
        *(("tag", tag, tags) for tag in demand.tags),
    ]
    unmet = [
        (what, wanted, offered) for what, wanted, offered in wishes if wanted is not None and wanted not in offered
    ]
    said = [_unoffered(what, wanted, offered) for what, wanted, offered in unmet[:MAX_FAULTS_SAID]]
    if demand.workflow is not None and not any(runs(device.workflows, demand.workflow) for device in devices):
        said.insert(0, _unknown_workflow(demand.workflow, devices))
    if len(unmet) > MAX_FAULTS_SAID:
        said.append(f"and {len(unmet) - MAX_FAULTS_SAID} more that no device has")
    if not said and not demand.for_work and all(map(is_reserved, devices)):
        return "all of the pool's devices are slots of applications, for works of theirs alone"
    return "; ".join(said) or f"no single device has all of: {demand}"


def _unknown_workflow(wanted: str, devices: Sequence[PooledDevice]) -> str:
    meant = near(wanted, (reference for device in devices for reference in device.workflows or ()))
    return f"no host has the workflow {wanted}" + (f"; did you mean {', '.join(meant)}?" if meant else "")


def _unoffered(what: str, wanted: str, offered: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(offered))
    alike = [text for text in distinct if _folded(text) == _folded(wanted)]
    close = alike or get_close_matches(wanted, distinct[:MAX_COMPARED], n=1)
    text = f"no device has {what} {wanted}"
    if "*" in wanted:
        text += "; it is compared literally, * is no wildcard"
    if "," in wanted:
        text += "; commas do not separate tags: give each one by itself"
    return f"{text}; did you mean {close[0]}?" if close else text


@lru_cache(maxsize=10_000)
def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in plain if character.isalnum())

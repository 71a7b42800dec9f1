"""Why a queued task waits, in words that help the person who waits."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from difflib import get_close_matches

from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.device import DeviceState, PooledDevice
from toolcrib.scheduling.views import PendingReason

_BUSY = (DeviceState.LEASED, DeviceState.RELEASING)


def pending_reason(demand: Constraints, devices: Sequence[PooledDevice], *, below_cap: bool) -> PendingReason:
    """Return why a task with `demand` does not run now, given the pool's `devices`."""
    fitting = [device for device in devices if demand.matches(device)]
    if not fitting:
        return PendingReason(code="no_such_device", text=_mismatch(demand, devices))
    serving = [device for device in fitting if device.in_service]
    if not serving:
        return PendingReason(code="out_of_service", text=f"{_count(fitting)} that fits is out of service")
    states = [device.state for device in serving]
    if DeviceState.IDLE in states:
        if not below_cap:
            return PendingReason(code="cap", text="the pool runs as many tasks at once as max_concurrent allows")
        return PendingReason(code="in_line", text="it waits for its turn")
    if any(state in _BUSY for state in states):
        return PendingReason(code="all_busy", text=f"{_count(serving)} that fits is busy")
    if DeviceState.RESTING in states:
        return PendingReason(code="resting", text=f"{_count(serving)} that fits rests after failures")
    if DeviceState.QUARANTINED in states:
        return PendingReason(code="quarantined", text=f"{_count(serving)} that fits is quarantined")
    return PendingReason(code="offline", text=f"{_count(serving)} that fits is offline")


def _count(devices: Sequence[PooledDevice]) -> str:
    return "the one device" if len(devices) == 1 else f"each of the {len(devices)} devices"


def _mismatch(demand: Constraints, devices: Sequence[PooledDevice]) -> str:
    """Say what nobody offers, and what is offered that looks like it."""
    if not devices:
        return "the pool has no devices yet"
    faults = [
        _unoffered("driver type", demand.driver_type, [device.driver_type for device in devices]),
        _unoffered("host", demand.host_id, [device.host_id for device in devices]),
        _unoffered("device", demand.device_id, [device.device_id for device in devices]),
        *(_unoffered("tag", tag, [offered for device in devices for offered in device.tags]) for tag in demand.tags),
    ]
    found = [fault for fault in faults if fault]
    return "; ".join(found) or f"no single device has all of: {demand}"


def _unoffered(what: str, wanted: str | None, offered: Sequence[str]) -> str | None:
    if wanted is None or wanted in offered:
        return None
    distinct = list(dict.fromkeys(offered))
    alike = [text for text in distinct if _folded(text) == _folded(wanted)]
    close = alike or get_close_matches(wanted, distinct, n=1)
    text = f"no device has {what} {wanted}"
    if "*" in wanted:
        text += "; it is compared literally, * is no wildcard"
    return f"{text}; did you mean {close[0]}?" if close else text


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in plain if character.isalnum())

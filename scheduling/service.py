"""What operators decide about devices and hosts: whether tasks may have them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final, Literal

from toolcrib.scheduling.device import DeviceState, PooledDevice
from toolcrib.scheduling.errors import InvalidRequest, UnknownDevice
from toolcrib.scheduling.health import MAX_REASON_LENGTH, forgive
from toolcrib.scheduling.messages import DeviceOrder, HostOrder
from toolcrib.scheduling.pool import PooledHost, PoolState
from toolcrib.scheduling.quoting import shown
from toolcrib.scheduling.reasons import MAX_COMPARED
from toolcrib.scheduling.registration import device_freed

MAX_KEY_LENGTH: Final = 129


def check_order(state: PoolState, order: DeviceOrder | HostOrder) -> None:
    """Let an order pass that can be carried out.

    Raises:
        UnknownDevice: the pool has no such device or host.
        InvalidRequest: a quarantine without a reason, or with one that cannot be kept.
    """
    if isinstance(order, HostOrder):
        _host(state, order.host_id)
        return
    _device(state, order.key)
    if order.kind == "quarantine":
        _checked_reason(order.reason)


def carry_out(state: PoolState, order: DeviceOrder | HostOrder, now: float) -> None:
    """Let tasks have a device, or a host's devices, or not. Whoever holds one may finish.

    Raises:
        UnknownDevice, InvalidRequest: as `check_order`.
    """
    if isinstance(order, HostOrder):
        _host(state, order.host_id).in_service = order.kind == "resume"
        return
    device = _device(state, order.key)
    if order.kind == "drain":
        device.in_service = False
        return
    if order.kind == "quarantine":
        device.quarantine = _checked_reason(order.reason)
    else:
        device.in_service, device.quarantine = True, None
        forgive(device)
    if device.state not in (DeviceState.LEASED, DeviceState.RELEASING):
        device_freed(state, device.key, now)


def _device(state: PoolState, key: str) -> PooledDevice:
    if key not in state.devices:
        raise _unknown("device", key, state.name, state.devices)
    return state.devices[key]


def _host(state: PoolState, host_id: str) -> PooledHost:
    if host_id not in state.hosts:
        raise _unknown("host", host_id, state.name, state.hosts)
    return state.hosts[host_id]


def _unknown(what: Literal["device", "host"], name: str, pool: str, known: Iterable[str]) -> UnknownDevice:
    close = get_close_matches(name[:MAX_KEY_LENGTH], list(known)[:MAX_COMPARED], n=1)
    return UnknownDevice.named(what, name, pool, close[0] if close else None)


def _checked_reason(reason: str | None) -> str:
    clean = " ".join((reason or "").split())
    if not clean or not clean.isprintable():
        raise InvalidRequest(f"reason: {shown(reason or '')} does not say in printable characters why")
    if len(clean) > MAX_REASON_LENGTH:
        raise InvalidRequest(f"reason: it has {len(clean)} characters, the limit is {MAX_REASON_LENGTH}")
    return clean

"""Which hosts belong to a pool: those whose public key an operator has had enrolled."""

from __future__ import annotations

from toolcrib.scheduling.errors import InvalidRequest, UnknownDevice
from toolcrib.scheduling.messages import HostKey, HostStanding
from toolcrib.scheduling.names import checked_name
from toolcrib.scheduling.pool import PooledHost, PoolState
from toolcrib.scheduling.registration import silence_host_now
from toolcrib.scheduling.repair import has_ending_work
from toolcrib.scheduling.signatures import checked_public_key


def check_enrollment(state: PoolState, order: HostKey) -> None:
    """Let a key pass that can be enrolled or revoked.

    Raises:
        InvalidRequest: the host's id or key is malformed, or the host is enrolled with another key.
        UnknownDevice: there is no such host whose key could be revoked.
    """
    host = state.hosts.get(checked_name(order.host_id, "host_id"))
    if order.public_key is None:
        if host is None:
            raise UnknownDevice.named("host", order.host_id, state.name)
        return
    checked_public_key(order.public_key)
    if host is not None and host.public_key not in (None, order.public_key):
        raise InvalidRequest(
            f"public_key: host {order.host_id} is enrolled with another key, {host.public_key}",
            hint=f"If the new one is right, first: toolcrib host revoke {order.host_id} --pool {state.name}",
        )


def enroll(state: PoolState, order: HostKey, now: float) -> None:
    """Keep a host's public key, or forget it: then the host gets no more leases, and what runs there may finish.

    Raises:
        InvalidRequest, UnknownDevice: as `check_enrollment`.
    """
    check_enrollment(state, order)
    if order.host_id not in state.hosts:
        state.hosts[order.host_id] = PooledHost(
            host_id=order.host_id, instance="", incarnation=0, state="offline", last_seen=None, device_ids=[]
        )
    host = state.hosts[order.host_id]
    if order.public_key not in (None, host.public_key):
        # Above all that a pool of this name may have had before it was ended: no registration is good twice.
        host.serial = max(host.serial, int(now))
    host.public_key = order.public_key
    if order.public_key is None:
        silence_host_now(state, order.host_id, "its key was revoked", now)


def standing_of(state: PoolState, host_id: str) -> HostStanding:
    """Return what the pool knows of a host that wants to register."""
    host = state.hosts.get(host_id)
    if host is None:
        return HostStanding()
    return HostStanding(
        instance=host.instance,
        incarnation=host.incarnation,
        serial=host.serial,
        public_key=host.public_key,
        tell=host.state == "offline" or has_ending_work(state, host_id),
    )


def enrolled(state: PoolState, host_keys: dict[str, str], now: float) -> PoolState:
    """Return `state` with these hosts enrolled, by their public keys.

    Raises:
        InvalidRequest: as `check_enrollment`.
    """
    for host_id, public_key in host_keys.items():
        enroll(state, HostKey(host_id=host_id, public_key=public_key), now)
    return state


def keys_of(state: PoolState) -> dict[str, str]:
    """Return the public keys of the hosts that are enrolled, by host."""
    return {host.host_id: host.public_key for host in state.hosts.values() if host.public_key is not None}

"""Who said it: the signatures by which hosts prove that claims, reports and registrations are their own.

Ed25519 (RFC 8032). What is signed names its purpose and all that the message is about, since whoever can read a
namespace can read every signature in its histories, and none of them may be good for anything else. Public keys and
signatures are texts in base64.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.messages import Claim, HostSnapshot, Report
from toolcrib.scheduling.quoting import shown

_KEY_BYTES: Final = 32
_SIGN: Final = 0x7F
"""What is left of a key's last byte without the sign of the point's x."""
_LOW_ORDER: Final = (
    bytes(32),
    bytes([1, *bytes(31)]),
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
    bytes([0xEC, *[0xFF] * 30, 0x7F]),
    bytes([0xED, *[0xFF] * 30, 0x7F]),
    bytes([0xEE, *[0xFF] * 30, 0x7F]),
)
"""The y of all points whose order divides 8, and two ways to write them that RFC 8032 forbids (as libsodium has them in
`ge25519_has_small_order`). Under such a key one signature is good for many statements; `cryptography` lets it pass.
"""
_WHERE_FROM: Final = "Copy it from what `toolcrib host keygen ID` printed on the host."


def checked_public_key(text: str) -> str:
    """Return `text` if it is a public key.

    Raises:
        InvalidRequest: it is none.
    """
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != _KEY_BYTES:
        raise InvalidRequest(
            f"public_key: {shown(text)} is not the base64 of an Ed25519 key, which has {_KEY_BYTES} bytes",
            hint=_WHERE_FROM,
        )
    if bytes([*raw[:-1], raw[-1] & _SIGN]) in _LOW_ORDER:
        raise InvalidRequest(f"public_key: {shown(text)} is a key that anybody can sign for", hint=_WHERE_FROM)
    return text


def is_signed(statement: bytes, signature: str, public_key: str) -> bool:
    """Return whether `signature` is one of `statement` by the owner of `public_key`; whatever is malformed is none."""
    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key, validate=True))
        key.verify(base64.b64decode(signature, validate=True), statement)
    except (InvalidSignature, ValueError):
        return False
    return True


def claim_statement(claim: Claim) -> bytes:
    """Return what a host signs to claim a lease; task, attempt and fencing number are in the lease's id."""
    return _statement("claim", claim.lease_id, claim.host_id, claim.incarnation, claim.claim_id, claim.machine)


def report_statement(report: Report, host_id: str) -> bytes:
    """Return what the host of a lease signs to end it."""
    return _statement("report", report.lease_id, host_id, report.incarnation, report.claim_id, report_digest(report))


def report_digest(report: Report) -> str:
    """Return the SHA-256 of what a report says, in hexadecimal."""
    error = None if report.error is None else [report.error.code, report.error.message, report.error.hint]
    return _digest([report.outcome, report.result, error, report.dirty])


def registration_statement(snapshot: HostSnapshot, pool: str) -> bytes:
    """Return what a host signs to register with a pool."""
    devices = [[one.id, one.driver, one.driver_type, one.tags, one.properties] for one in snapshot.devices]
    leases = [[lease.id, lease.device_key] for lease in snapshot.leases]
    return _statement(
        "registration",
        pool,
        snapshot.host_id,
        snapshot.instance,
        snapshot.incarnation,
        snapshot.serial,
        snapshot.presence,
        snapshot.machine,
        _digest([devices, leases, snapshot.served, snapshot.workflows]),
    )


def _statement(purpose: str, *parts: str | int | None) -> bytes:
    return _canonical(["toolcrib", 1, purpose, *parts])


def _digest(data: Any) -> str:
    return hashlib.sha256(_canonical(data)).hexdigest()


def _canonical(data: Any) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()

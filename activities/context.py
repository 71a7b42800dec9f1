"""What a runner gets to know about the lease it works under."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.errors import TaskFailed, ToolcribError
from toolcrib.scheduling.lease import Lease


class RunFailed(TaskFailed):
    """A runner's verdict: the work was done, and failed. It is final; the task is not tried again.

    `result` is kept on the task beside the error.
    """


class InfrastructureFailed(ToolcribError):
    """A runner's word that the device or the host failed, and not the work: the attempt ends, and another is made.

    It counts against the device, which rests, as after a lease that was not renewed; the third in a row quarantines it.
    """

    code = "infrastructure_failed"


class RunningWork(Protocol):
    """A process under the guard, with all that it starts: see `Work`."""

    pid: int

    async def wait(self) -> int:
        """Return the exit code once the whole tree is gone."""

    async def kill(self, grace: float) -> None:
        """End the tree: SIGTERM, after `grace` seconds SIGKILL."""


class Spawner(Protocol):
    """Starts and ends processes under the guard: see `Guard`."""

    async def spawn(
        self,
        lease_id: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stdin: int,
        stdout: int,
        stderr: int,
    ) -> RunningWork:
        """Start a process of a lease."""

    async def end(self, lease_id: str) -> None:
        """Kill the processes of a lease."""


class Log(Protocol):
    """Takes what is to be kept of an attempt's output, from any thread: see `AttemptLog`."""

    @property
    def behind(self) -> bool:
        """Whether a lot waits for the disk."""

    def write(self, data: bytes) -> None:
        """Add to the log; it neither waits nor raises."""

    def line(self, text: str) -> None:
        """Add a line."""


class WorkResult(dict[str, Any]):
    """The result of a runner of toolcrib's own: the list of artifacts is added to it, if there are any."""


class Reporter(Protocol):
    """Takes progress: see `ProgressReporter`."""

    def report(self, value: float, message: str | None = None) -> None:
        """Take note of progress."""

    async def flush(self) -> None:
        """Send what was not sent yet."""


@dataclass(kw_only=True)
class LeaseContext:
    """One lease, as the work under it sees it.

    Cancellation arrives as `asyncio.CancelledError` at the next await; who blocks meanwhile can look at `cancelled`.
    """

    lease: Lease
    device: DeviceSpec
    guard: Spawner
    reporter: Reporter
    folder: Path
    """Exists, is empty and belongs to this lease alone; it is deleted when the work is over."""
    artifacts: Path
    """Exists; what is put here is kept."""
    log: Log
    """What `toolcrib logs` shows of the attempt. Commands that run under the guard print into it by themselves."""
    deadline: float
    """When the time limit ends the work, in unix seconds."""
    environment: dict[str, str] = field(default_factory=dict)
    """What the work's processes get: the host's own environment, `TOOLCRIB_*`, and what the driver adds."""
    partial_result: Any = None
    """What a runner wants kept if its work is ended by the time limit."""
    users: list[Future[Any]] = field(default_factory=list)
    """What runs in other threads of the worker: the device is not free before all of it is done."""
    lost: Callable[[], bool] = lambda: False
    """Whether a cancellation came because the lease is no longer held: then nothing may be done in its name."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set when a runner aside is cancelled."""

    @property
    def cancelled(self) -> bool:
        """Whether the work is to stop: its task was cancelled, its time is over, or the lease is lost."""
        return self.stop.is_set()

    @property
    def task_id(self) -> str:
        """Id of the task."""
        return self.lease.task_id

    def progress(self, value: float, message: str | None = None) -> None:
        """Say how far the work is, from 0 to 1, as often as you like; a few times a second it is passed on.

        Raises:
            InvalidRequest: the value or the message is outside its limits.
        """
        self.reporter.report(value, message)

    @property
    def attempt(self) -> int:
        """Number of this attempt, from 1."""
        return self.lease.attempt

    @property
    def fencing(self) -> int:
        """Fencing number of the lease: grows with every lease of the pool."""
        return self.lease.fencing

"""Every error that toolcrib raises on purpose.

    ToolcribError
    ├── InvalidRequest          invalid               what was asked for is not well-formed
    ├── QueueFull               queue_full            the pool's queue is at its limit
    ├── UnknownPool             unknown_pool
    ├── UnknownStrategy         unknown_strategy
    ├── UnknownDefinition       unknown_definition
    ├── UnknownTask             unknown_task
    ├── UnknownDevice           unknown_device
    ├── UnknownAttempt          unknown_attempt       the task has no such attempt
    ├── UnknownFile             unknown_file          no such log or artifact, or no longer
    ├── NotEnrolled             not_enrolled          the pool has no key of the host
    ├── IdempotencyConflict     idempotency_conflict  the same key with other content
    ├── ClaimRefused
    │   ├── NotOwner            not_owner             the claim came from another host
    │   ├── BadSignature        bad_signature         not signed with the host's key
    │   ├── HostSuperseded      host_superseded       the host has a newer worker
    │   ├── AlreadyClaimed      already_claimed
    │   ├── LeaseExpired        lease_expired
    │   ├── LeaseSuperseded     lease_superseded
    │   └── TaskEnded           task_ended
    ├── ReportConflict          report_conflict       a second report that differs from the first
    ├── TaskFailed              task_failed, or the code that the runner gave
    ├── TaskCancelled           task_cancelled
    ├── WaitTimeout             wait_timeout
    ├── CannotReplay            cannot_replay         the scheduler is not of the version that made a task or pool
    ├── HostUnreachable         host_unreachable      the host that has a log or artifact does not answer
    ├── NoConnection            no_connection
    └── NotSetUp                not_set_up            namespace or search attributes are missing

`code` is stable and machine-readable, `hint` says what to do next, and `exit_code` is what the command line ends with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from toolcrib.scheduling.hints import hint_for
from toolcrib.scheduling.quoting import shown


@dataclass(frozen=True, kw_only=True)
class ErrorBody:
    """An error as data: on a task's record, in JSON output and in Temporal failures."""

    code: str
    message: str
    hint: str | None = None


class ToolcribError(Exception):
    """Something toolcrib refuses or cannot do; the base of all its errors."""

    code: ClassVar[str] = "unexpected"
    exit_code: ClassVar[int] = 1
    default_hint: ClassVar[str | None] = None

    def __init__(self, message: str, *, hint: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.default_hint
        self.error_code = code or self.code

    @property
    def body(self) -> ErrorBody:
        """The error as data."""
        return ErrorBody(code=self.error_code, message=self.message, hint=self.hint)


class InvalidRequest(ToolcribError):
    """A field is missing, malformed or beyond its limit; the message begins with the field and a colon."""

    code = "invalid"
    exit_code = 4
    default_hint = "Correct the field and try again."

    def __init__(self, message: str, *, hint: str | None = None, code: str | None = None) -> None:
        super().__init__(message, hint=hint or hint_for(message), code=code)


class QueueFull(ToolcribError):
    """The pool's queue is at its limit; nothing was created."""

    code = "queue_full"
    exit_code = 4
    default_hint = "Try again when the queue is shorter, or raise it: toolcrib pool configure NAME --max-queue-depth N"


class UnknownPool(ToolcribError):
    """No pool of that name exists."""

    code = "unknown_pool"
    exit_code = 4

    @classmethod
    def named(cls, pool: str) -> UnknownPool:
        """Return the error for `pool`."""
        return cls(f"there is no pool {pool!r}", hint=f"Create it: toolcrib pool create {pool}")

    @classmethod
    def ended(cls, pool: str) -> UnknownPool:
        """Return the error for `pool`, whose workflow was terminated."""
        return cls(
            f"pool {pool!r} was ended: its workflow no longer runs",
            hint=f"Create it again: toolcrib pool create {pool}; its tasks and hosts come back by themselves",
        )


class UnknownStrategy(ToolcribError):
    """No assignment strategy of that name is registered."""

    code = "unknown_strategy"
    exit_code = 4

    @classmethod
    def named(cls, strategy: str, known: Iterable[str]) -> UnknownStrategy:
        """Return the error for `strategy`, listing those that are `known`."""
        return cls(
            f"no assignment strategy {strategy!r} is registered; known: {', '.join(known)}",
            hint="Use a known name, or load the strategy's module in every scheduler: toolcrib worker --plugin MODULE",
        )


class UnknownDefinition(ToolcribError):
    """No host of the pool has a workflow of that name and version."""

    code = "unknown_definition"
    exit_code = 4

    @classmethod
    def named(cls, reference: str, pool: str, near: Iterable[str], on: str | None = None) -> UnknownDefinition:
        """Return the error for `reference`, which no host of `pool` has; those that are `near` may be meant.

        `on` is the driver type of the devices that it was asked for.
        """
        meant, where = ", ".join(near), "" if on is None else f" for devices of driver type {on}"
        return cls(
            f"no host of pool {pool!r} has the workflow {shown(reference)}{where}",
            hint=f"{f'Did you mean {meant}? ' if meant else ''}See: toolcrib definition list --pool {pool}",
        )


class UnknownTask(ToolcribError):
    """No task has that id."""

    code = "unknown_task"
    exit_code = 8

    @classmethod
    def named(cls, task_id: str) -> UnknownTask:
        """Return the error for `task_id`."""
        return cls(
            f"no such task: {task_id}",
            hint="It never existed, or it ended longer ago than the namespace keeps workflows. See: toolcrib list",
        )


class UnknownDevice(ToolcribError):
    """No device or host has that key."""

    code = "unknown_device"
    exit_code = 8

    @classmethod
    def named(cls, what: Literal["device", "host"], name: str, pool: str, alike: str | None = None) -> UnknownDevice:
        """Return the error for a device or host that `pool` does not have; `alike` is one that may be meant."""
        meant = f"; did you mean {alike}?" if alike else ""
        return cls(f"pool {pool!r} has no {what} {shown(name)}{meant}", hint=f"See: toolcrib {what} list --pool {pool}")


class UnknownAttempt(ToolcribError):
    """The task has no attempt of that number, or none yet."""

    code = "unknown_attempt"
    exit_code = 8

    @classmethod
    def named(cls, task_id: str, number: int | None, attempts: int) -> UnknownAttempt:
        """Return the error for attempt `number` of a task that has so many; None: for any."""
        if not attempts:
            return cls(f"task {task_id} has had no attempt", hint=f"See where it is: toolcrib status {task_id}")
        known = "only one" if attempts == 1 else f"only 1 to {attempts}"
        return cls(f"task {task_id} has no attempt {number}, {known}", hint=f"See them: toolcrib status {task_id}")


class UnknownFile(ToolcribError):
    """There is no such log or artifact, or no longer."""

    code = "unknown_file"
    exit_code = 8


class NotEnrolled(ToolcribError):
    """The pool does not have the public key of a host."""

    code = "not_enrolled"
    exit_code = 4

    @classmethod
    def named(cls, host_id: str, pool: str, public_key: str | None = None) -> NotEnrolled:
        """Return the error for a host of `pool`; `public_key` is the one to enroll, where that is known."""
        key = f" --public-key {public_key}" if public_key else ""
        return cls(
            f"host {shown(host_id)} is not enrolled in pool {pool!r}",
            hint=f"Enroll it: toolcrib host enroll {host_id} --pool {pool}{key}",
        )

    @classmethod
    def with_another_key(cls, host_id: str, pool: str, public_key: str) -> NotEnrolled:
        """Return the error for a host of `pool` that is enrolled, but not with its key, which is `public_key`."""
        enroll = f"toolcrib host enroll {host_id} --pool {pool} --public-key {public_key}"
        return cls(
            f"host {shown(host_id)} is enrolled in pool {pool!r} with another key than this machine's",
            hint=f"If this is the host: toolcrib host revoke {host_id} --pool {pool} && {enroll}",
        )


class IdempotencyConflict(ToolcribError):
    """The idempotency key belongs to a task with other content."""

    code = "idempotency_conflict"
    exit_code = 4
    default_hint = "Use another key, or submit exactly what was submitted with it."


class ClaimRefused(ToolcribError):
    """A host asked for a task's work and does not get it; subclasses say why."""

    code = "claim_refused"


class NotOwner(ClaimRefused):
    """The lease is another host's."""

    code = "not_owner"


class BadSignature(ClaimRefused):
    """What a host said is not signed with the key that it was enrolled with."""

    code = "bad_signature"
    exit_code = 4


class HostSuperseded(ClaimRefused):
    """The host has a newer worker; this one is to end."""

    code = "host_superseded"
    exit_code = 4
    default_hint = "Two workers must not share a host id: stop one of them, or give it another id."


class AlreadyClaimed(ClaimRefused):
    """The lease was claimed before, by another claim."""

    code = "already_claimed"


class LeaseExpired(ClaimRefused):
    """The lease is over: it was not claimed or not renewed in time."""

    code = "lease_expired"


class LeaseSuperseded(ClaimRefused):
    """The task has a newer lease, or does not know this one."""

    code = "lease_superseded"


class TaskEnded(ClaimRefused):
    """The task has ended."""

    code = "task_ended"
    exit_code = 4


class ReportConflict(ToolcribError):
    """A report for a lease differs from the one on record; the first stands."""

    code = "report_conflict"


class TaskFailed(ToolcribError):
    """The task ended as failed.

    `error_code` is the runner's, or `lease_expired`, `time_limit` and the like; `result` is what it left all the same.
    """

    code = "task_failed"
    exit_code = 5

    def __init__(self, message: str, *, hint: str | None = None, code: str | None = None, result: Any = None) -> None:
        super().__init__(message, hint=hint, code=code)
        self.result = result


class TaskCancelled(ToolcribError):
    """The task ended as cancelled."""

    code = "task_cancelled"
    exit_code = 6


class WaitTimeout(ToolcribError):
    """Waiting took longer than the caller allowed; what was waited for goes on."""

    code = "wait_timeout"
    exit_code = 7


class CannotReplay(ToolcribError):
    """The scheduler cannot go on with what one of another version has begun. Nothing of it is lost."""

    code = "cannot_replay"
    default_hint = "Run a scheduler of the version that began it, or of a newer one that knows its history."


class HostUnreachable(ToolcribError):
    """A host does not answer; what it keeps can be had when it does."""

    code = "host_unreachable"
    exit_code = 3

    @classmethod
    def named(cls, host_id: str) -> HostUnreachable:
        """Return the error for `host_id`."""
        return cls(
            f"host {host_id} does not answer, and what it keeps is there alone",
            hint="Try again when its worker runs. See: toolcrib host list",
        )


class NoConnection(ToolcribError):
    """The Temporal server cannot be reached."""

    code = "no_connection"
    exit_code = 3
    default_hint = "Start one with `toolcrib up`, or name yours: export TEMPORAL_ADDRESS=HOST:PORT"


class NotSetUp(ToolcribError):
    """The server is there, but the namespace or search attributes that toolcrib needs are not."""

    code = "not_set_up"
    exit_code = 3


def _tree(base: type[ToolcribError]) -> list[type[ToolcribError]]:
    return [base, *(found for child in base.__subclasses__() for found in _tree(child))]


ERRORS_BY_CODE: dict[str, type[ToolcribError]] = {error.code: error for error in _tree(ToolcribError)}
"""Every error class by its code."""


def from_body(body: ErrorBody) -> ToolcribError:
    """Return the error that `body` describes: of the class with its code, else a plain `ToolcribError`."""
    return ERRORS_BY_CODE.get(body.code, ToolcribError)(body.message, hint=body.hint, code=body.code)

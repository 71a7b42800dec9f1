"""Errors have a code, say what to do next, and survive being sent through Temporal."""

from __future__ import annotations

import pytest
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError

from toolcrib.scheduling import errors
from toolcrib.scheduling.errors import (
    ERRORS_BY_CODE,
    ErrorBody,
    QueueFull,
    TaskFailed,
    ToolcribError,
    UnknownPool,
    UnknownStrategy,
    UnknownTask,
    from_body,
)
from toolcrib.workflows.failures import from_failure, to_failure

CLASSES = sorted(ERRORS_BY_CODE.values(), key=lambda error: error.code)

PROMISED = (
    *("invalid", "queue_full", "unknown_pool", "unknown_strategy", "unknown_definition", "unknown_task"),
    *("idempotency_conflict", "not_owner", "already_claimed", "lease_expired", "lease_superseded", "report_conflict"),
    *("task_ended", "task_failed", "task_cancelled", "wait_timeout", "no_connection", "not_set_up"),
)

EXIT_CODES = {
    "no_connection": 3,
    "not_set_up": 3,
    "invalid": 4,
    "queue_full": 4,
    "unknown_strategy": 4,
    "unknown_pool": 4,
    "unknown_definition": 4,
    "task_failed": 5,
    "task_cancelled": 6,
    "wait_timeout": 7,
    "unknown_task": 8,
    "unknown_device": 8,
    "unexpected": 1,
}


async def sent(failure: ApplicationError) -> ApplicationError:
    """Return a failure as it comes out at the other end."""
    from temporalio.api.failure.v1 import Failure

    message = Failure()
    converter = DataConverter.default
    await converter.encode_failure(failure, message)
    arrived = await converter.decode_failure(Failure.FromString(message.SerializeToString()))
    assert isinstance(arrived, ApplicationError)
    return arrived


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.code)
async def test_every_error_survives_the_way_through_temporal(kind: type[ToolcribError]) -> None:
    """Class, code, message, hint and exit code come out as they went in; Temporal does not retry any."""
    for hint in (None, "Do this."):
        error = kind("it went wrong", hint=hint)
        failure = await sent(to_failure(error))
        assert failure.non_retryable
        assert failure.type == kind.code
        back = from_failure(failure)
        assert type(back) is kind
        assert (back.body, str(back), back.exit_code) == (error.body, "it went wrong", kind.exit_code)


async def test_a_runners_own_code_survives_too() -> None:
    """It belongs to no class; code, message and hint are kept."""
    error = TaskFailed("exit code 3", code="exit_code", hint="See the log.", result={"exit_code": 3})
    failure = await sent(to_failure(error, error.result))
    assert failure.details == ({"hint": "See the log.", "result": {"exit_code": 3}},)
    back = from_failure(failure)
    assert type(back) is ToolcribError
    assert back.body == ErrorBody(code="exit_code", message="exit code 3", hint="See the log.")


@pytest.mark.parametrize("details", [(), (None,), ("text",), ({"other": 1},)])
def test_a_failure_of_somebody_else_becomes_a_plain_error(details: tuple[object, ...]) -> None:
    """Whatever details it has, or none."""
    back = from_failure(ApplicationError("boom", *details, type="ValueError"))
    assert (type(back), back.error_code, back.message, back.hint) == (ToolcribError, "ValueError", "boom", None)
    assert from_failure(ApplicationError("boom")).error_code == "unexpected"


def test_codes_are_unique_and_those_that_were_promised() -> None:
    """A code leads to one class, and every class has one of its own."""
    defined = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, ToolcribError)]
    assert sorted(ERRORS_BY_CODE) == sorted(each.code for each in defined)
    assert set(PROMISED) <= set(ERRORS_BY_CODE)


def test_exit_codes_are_those_that_were_promised() -> None:
    """By kind of error."""
    assert {code: ERRORS_BY_CODE[code].exit_code for code in EXIT_CODES} == EXIT_CODES


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.code)
def test_the_tree_in_the_docstring_is_complete(kind: type[ToolcribError]) -> None:
    """Whoever catches errors finds each of them there; every class says what it means."""
    assert kind.__name__ in (errors.__doc__ or "")
    assert (kind.__doc__ or "").strip().endswith(".")


def test_errors_say_what_is_known_and_what_to_do() -> None:
    """The name that was wrong, the names that are right, the next command."""
    assert str(UnknownPool.named("lab")) == "there is no pool 'lab'"
    assert UnknownPool.named("lab").hint == "Create it: toolcrib pool create lab"
    assert str(UnknownStrategy.named("x", ["a", "b"])) == "no assignment strategy 'x' is registered; known: a, b"
    assert str(UnknownTask.named("task-1")) == "no such task: task-1"
    assert "--max-queue-depth" in (QueueFull("full").hint or "")


def test_a_hint_of_the_moment_goes_before_that_of_the_class() -> None:
    """And a body without one gets that of the class back."""
    assert QueueFull("full", hint="Wait.").body.hint == "Wait."
    assert from_body(ErrorBody(code="queue_full", message="full")).hint == QueueFull.default_hint

"""The settings of a process, and its log."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
import temporalio.workflow
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.worker import settings
from toolcrib.worker.logs import configure_logs
from toolcrib.worker.settings import LogFormat, Settings, load_settings


@pytest.fixture(autouse=True)
def logging_restored() -> Iterator[None]:
    """Leave the process's logging as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    temporalio.workflow.logger.workflow_info_on_message = True
    activity.logger.activity_info_on_message = True
    structlog.reset_defaults()


def test_home_is_in_the_users_data_folder_unless_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """TOOLCRIB_HOME names the folder; unset or empty it is below the user's home, and always absolute."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TOOLCRIB_HOME", "")
    assert load_settings().home == tmp_path / ".local/share/toolcrib"
    monkeypatch.setenv("TOOLCRIB_HOME", "~/elsewhere")
    assert load_settings().home == tmp_path / "elsewhere"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLCRIB_HOME", "near")
    assert load_settings().home == tmp_path / "near"


def test_locks_are_in_one_folder_of_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All hosts of a machine lock their devices below /run/lock, or below /var/lock where that is missing."""
    monkeypatch.delenv("TOOLCRIB_LOCKS")
    run, var = tmp_path / "run", tmp_path / "var"
    assert [str(folder) for folder in settings.LOCK_FOLDERS] == ["/run/lock", "/var/lock"]
    monkeypatch.setattr(settings, "LOCK_FOLDERS", [run, var])
    assert load_settings().locks == run / "toolcrib"
    var.mkdir()
    assert load_settings().locks == var / "toolcrib"
    run.mkdir()
    assert load_settings().locks == run / "toolcrib"


def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that is not allowed is refused with the variable's name and the values that are."""
    monkeypatch.setenv("TOOLCRIB_LOG_LEVEL", "loud")
    with pytest.raises(InvalidRequest, match=r"TOOLCRIB_LOG_LEVEL: .*'warning'.*'loud'") as caught:
        load_settings()
    assert "TOOLCRIB_LOG_LEVEL" in (caught.value.hint or "")


def test_letter_case_of_a_level_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels and formats are understood in any case."""
    monkeypatch.setenv("TOOLCRIB_LOG_LEVEL", "DEBUG")
    assert load_settings().log_level == "debug"


def _logged(form: LogFormat) -> list[str]:
    stream = io.StringIO()
    configure_logs(Settings(log_format=form), stream)
    structlog.get_logger("toolcrib").info("claimed a lease", lease="task-1.1.7", attempt=1)
    structlog.get_logger("toolcrib").debug("not to be seen")
    logging.getLogger("temporalio.worker").warning("a poller %s", "stopped")
    return stream.getvalue().splitlines()


def test_both_kinds_of_loggers_end_in_one_log() -> None:
    """Messages of structlog and of the standard library, as Temporal's, look the same; lesser ones are left out."""
    first, second = (json.loads(line) for line in _logged("json"))
    assert (first["event"], first["lease"], first["attempt"]) == ("claimed a lease", "task-1.1.7", 1)
    assert (second["event"], second["level"], second["logger"]) == ("a poller stopped", "warning", "temporalio.worker")


def test_elsewhere_than_on_a_terminal_the_log_is_key_and_value() -> None:
    """By itself the log is `key=value` when it goes to a file."""
    first, _ = _logged("auto")
    assert first.startswith("timestamp=")
    assert 'level=info event="claimed a lease"' in first
    assert "lease=task-1.1.7" in first


def test_a_failure_is_logged_with_its_traceback_on_one_line() -> None:
    """A traceback stays within its message, so that a line is a message."""
    stream = io.StringIO()
    configure_logs(Settings(log_format="json"), stream)
    try:
        int("broken")
    except ValueError:
        structlog.get_logger("toolcrib").exception("failed")
    (line,) = stream.getvalue().splitlines()
    assert "ValueError: invalid literal" in json.loads(line)["exception"]


def _logged_by_temporal(form: LogFormat = "json") -> io.StringIO:
    stream = io.StringIO()
    configure_logs(Settings(log_format=form), stream)
    return stream


def test_what_a_workflow_or_activity_logs_has_its_fields() -> None:
    """What is logged beside the message are fields of their own, with the workflow's id and the activity's type."""
    stream = _logged_by_temporal()

    async def tell() -> None:
        activity.logger.warning("not told", extra={"task": "task-1"})

    asyncio.run(ActivityEnvironment().run(tell))
    workflow = {"workflow_id": "toolcrib-pool-a", "run_id": "1-2-3", "attempt": 1}
    fields = {"task": "task-2", "reason": "it is gone", "temporal_workflow": workflow}
    logging.getLogger("temporalio.workflow").warning("took back what a task had", extra=fields)
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (first["event"], first["task"], first["activity"], first["workflow"]) == (
        "not told",
        "task-1",
        "unknown",
        "test",
    )
    assert second["event"] == "took back what a task had"
    assert {**second, "timestamp": ""} == {
        "event": "took back what a task had",
        "task": "task-2",
        "reason": "it is gone",
        "workflow": "toolcrib-pool-a",
        "logger": "temporalio.workflow",
        "level": "warning",
        "timestamp": "",
    }
    assert not temporalio.workflow.logger.workflow_info_on_message


@pytest.mark.parametrize(
    ("error", "reason"),
    [(asyncio.CancelledError("gone"), "gone"), (ApplicationError("later"), "later"), (InvalidRequest("a: b"), "a: b")],
)
def test_an_activity_that_fails_by_intention_is_one_line(error: BaseException, reason: str) -> None:
    """Its log has the reason, without a traceback; any other failure has one."""
    stream, told = _logged_by_temporal(), {"__temporal_error_identifier": "ActivityFailure"}
    for failure in (error, KeyError("oops")):
        try:
            raise failure
        except (asyncio.CancelledError, ApplicationError, InvalidRequest, KeyError):
            logging.getLogger("temporalio.activity").warning("failed", exc_info=True, extra=told)
    expected, unexpected = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (expected["reason"], "exception" in expected) == (reason, False)
    assert "KeyError" in unexpected["exception"]
    assert not {"__temporal_error_identifier", "reason"} & set(unexpected)

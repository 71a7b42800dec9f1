"""Logs go to standard error: for people on a terminal, for programs elsewhere."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Final, TextIO

import structlog
import temporalio.activity
import temporalio.workflow
from structlog.typing import EventDict, Processor, WrappedLogger
from temporalio.exceptions import FailureError

from toolcrib.scheduling.errors import ToolcribError
from toolcrib.worker.settings import LogFormat, Settings

_EXPECTED: Final = (asyncio.CancelledError, FailureError, ToolcribError)
"""With what an activity fails by intention; where it was raised tells nobody anything."""


def configure_logs(settings: Settings, stream: TextIO | None = None) -> None:
    """Send what this process logs, by structlog or by the standard library, to `stream` (standard error)."""
    stream = stream or sys.stderr
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    # Otherwise the SDK appends all that it knows of a workflow or activity to what is logged.
    temporalio.workflow.logger.workflow_info_on_message = False
    temporalio.activity.logger.activity_info_on_message = False
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.ExtraAdder(), _who_logged, _expected_failure, *shared],
            processors=_rendering(settings.log_format, stream),
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.log_level.upper())


def _rendering(form: LogFormat, stream: TextIO) -> list[Processor]:
    tidy = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    on_terminal = stream.isatty()
    if form == "console" or (form == "auto" and on_terminal):
        return [tidy, structlog.dev.ConsoleRenderer(colors=on_terminal)]
    if form == "json":
        return [tidy, structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    order = ["timestamp", "level", "event"]
    return [
        tidy,
        structlog.processors.format_exc_info,
        _one_line,
        structlog.processors.LogfmtRenderer(key_order=order, drop_missing=True),
    ]


def _who_logged(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Name the workflow and activity that logged."""
    workflow, activity = event.pop("temporal_workflow", {}), event.pop("temporal_activity", {})
    names = {"workflow": (activity or workflow).get("workflow_id"), "activity": activity.get("activity_type")}
    return {**event, **{name: value for name, value in names.items() if value is not None}}


def _expected_failure(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Give the reason of an activity that failed by intention, in place of its traceback."""
    failed = event.pop("__temporal_error_identifier", None) == "ActivityFailure"
    error = event["exc_info"][1] if failed and event.get("exc_info") else None
    if isinstance(error, _EXPECTED):
        del event["exc_info"]
        event["reason"] = str(error)
    return event


def _one_line(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Make every value fit for `key=value`, which knows no keys with blanks."""
    return {key.replace(" ", "_"): value for key, value in event.items()}

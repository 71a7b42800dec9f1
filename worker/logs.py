"""Logs go to standard error: for people on a terminal, for programs elsewhere."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from toolcrib.worker.settings import LogFormat, Settings


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
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=_rendering(settings.log_format, stream)
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


def _one_line(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Make every value fit for `key=value`, which knows no keys with blanks."""
    return {key.replace(" ", "_"): value for key, value in event.items()}

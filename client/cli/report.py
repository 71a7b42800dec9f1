"""How errors are told: what is wrong in one line, what to type next in another."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final

import typer

from toolcrib.client.cli.output import end_process, note
from toolcrib.scheduling.errors import ErrorBody, ToolcribError

EXIT_UNEXPECTED: Final = 1
EXIT_REFUSED: Final = 4

Hook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]

_NEXT = {
    3: "See: toolcrib doctor",
    4: "Correct it and try again; see: toolcrib COMMAND --help",
    7: "It goes on; see: toolcrib list",
    8: "See: toolcrib list, or toolcrib pool show",
}


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether `arguments` ask for JSON, also if they are wrong otherwise."""
    before, given = "", [*arguments, "--"]
    for word in given[: given.index("--")]:
        if word in {"-ojson", "-o=json", "--output=json"} or (before in {"-o", "--output"} and word == "json"):
            return True
        before = word
    return False


def report(error: ToolcribError, *, as_json: bool) -> None:
    """Tell of an error that toolcrib raised on purpose."""
    hint = error.hint or _NEXT.get(error.exit_code, "See: toolcrib doctor")
    _tell(ErrorBody(code=error.error_code, message=error.message, hint=hint), as_json)


def unwritable(error: OSError) -> ToolcribError:
    """Return the error for output that cannot be written."""
    return ToolcribError(
        f"the output could not be written: {error.strerror}", hint="Write it elsewhere; what was ordered was done."
    )


def report_usage(error: typer.TyperException, *, as_json: bool) -> None:
    """Tell of a command line that was not understood."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "toolcrib"
    message = error.format_message().rstrip(".")
    _tell(ErrorBody(code="usage", message=message, hint=f"See: {command} --help"), as_json)


def unexpected_hook(*, as_json: bool) -> Hook:
    """Return what is to become `sys.excepthook`: one line and a hint, or with `TOOLCRIB_DEBUG` the traceback."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if os.environ.get("TOOLCRIB_DEBUG"):
            sys.__excepthook__(kind, error, trace)
        else:
            message = f"unexpected {kind.__name__}: {error}"
            hint = "See where it comes from: set TOOLCRIB_DEBUG=1 and run it again"
            _tell(ErrorBody(code="unexpected", message=message, hint=hint), as_json)
        end_process(EXIT_UNEXPECTED)

    return hook


def _tell(body: ErrorBody, as_json: bool) -> None:
    if as_json:
        data = {"code": body.code, "message": body.message, "hint": body.hint}
        note(json.dumps({"error": data}))
    else:
        note(f"error: {_joined(body.message)}\nhint: {_joined(body.hint or '')}")


def _joined(text: str) -> str:
    return " ".join(text.split())

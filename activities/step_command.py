"""The command that a step of a definition is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from toolcrib.activities.context import LeaseContext, RunFailed
from toolcrib.activities.runners.command import Command
from toolcrib.activities.runners.python import PythonFunctions, result_of
from toolcrib.definitions.steps import StepOrder

MAX_RESULT_BYTES: Final = 64 * 1024
"""Of what the function of a `python` step returns."""

_FUNCTIONS: Final = PythonFunctions()


class StepCommand:
    """One attempt at a step, in its lease's folder, which all steps of a run share."""

    def __init__(self, order: StepOrder, context: LeaseContext, attempt: int) -> None:
        self._order = order
        self._context = context
        self._name = f".step-{order.number}-{attempt}"

    def command(self) -> Command:
        """Return what to start.

        Raises:
            RunFailed: it cannot be started, since its input is gone or its function is none.
        """
        order, folder = self._order, self._context.folder
        stdin = self._stdin()
        if order.runner == "shell":
            script = folder / f"{self._name}.sh"  # a file, since one argument may have no more than 128 KiB
            script.write_bytes(order.run.encode())
            return Command(argv=["/bin/sh", str(script)], env=order.env, stdin=stdin)
        if order.runner == "exec":
            return Command(argv=[order.run, *order.arguments.get("args", [])], env=order.env, stdin=stdin)
        call = _FUNCTIONS.command(order.run, order.arguments, self._answer)
        return Command(argv=call.argv, env=order.env, stdin=call.stdin)

    def result(self, code: int) -> Any:
        """Return what the function of a `python` step returned; of others there is nothing.

        Raises:
            RunFailed, InfrastructureFailed: see `result_of`.
        """
        if self._order.runner != "python":
            return None
        result = result_of(self._order.run, self._answer, code)
        size = len(json.dumps(result))
        if size > MAX_RESULT_BYTES:
            raise RunFailed(f"what {self._order.run} returned has {size:,} bytes, the limit is {MAX_RESULT_BYTES:,}")
        return result

    @property
    def _answer(self) -> Path:
        return self._context.folder / f"{self._name}.json"

    def _stdin(self) -> bytes | Path | None:
        if self._order.stdin_log is not None:
            log = self._context.artifacts / self._order.stdin_log
            if not log.is_file():
                raise RunFailed(f"its input is no longer there: {self._order.stdin_log}")
            return log
        return None if self._order.stdin is None else self._order.stdin.encode(errors="surrogateescape")

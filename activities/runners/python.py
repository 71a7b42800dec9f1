"""The runner `python`: a function that its host can import, called in a process of its own."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from toolcrib.activities.context import InfrastructureFailed, LeaseContext, RunFailed
from toolcrib.activities.runners.command import Command, run_command
from toolcrib.activities.runners.output import Output
from toolcrib.activities.runners.progress_lines import ProgressLines
from toolcrib.activities.runners.verdict import command_result, how_it_ended, see_output
from toolcrib.scheduling.quoting import shown
from toolcrib.scheduling.references import FUNCTIONS

ANSWER: Final = ".toolcrib-answer.json"
MAX_ANSWER_BYTES: Final = 1 << 20
"""More than a result may have, with what JSON makes of it."""

_MAIN: Final = Path(__file__).with_name("python_main.py")
_FUNCTION: Final = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")


class PythonFunctions:
    """Calls functions, async or not, each in a process with the folder, the environment and the guard of its lease.

    Modules are found where the worker finds its own, and in the folder in which it was started.
    """

    def __init__(self) -> None:
        here = str(Path.cwd())
        self._path = list(dict.fromkeys([*(folder or here for folder in sys.path), here]))

    async def call(self, function: str, inputs: Mapping[str, Any], context: LeaseContext) -> Any:
        """Call `package.module:function` with the inputs by name, and return what it returns.

        What it prints is kept as with `shell`: it is the result of a failure. When the call is cancelled, the function
        gets SIGTERM as an exception (`CancelledError` if it is async, else `SystemExit`), and then SIGKILL.

        Raises:
            RunFailed: it cannot be imported, has other parameters, has raised, or has ended the process.
            InfrastructureFailed: it has raised that.
            SpawnFailed, GuardLost, NotKilled: see `run_command`.
        """
        answer = context.folder / ANSWER
        with Output(ProgressLines(context.progress)) as output:
            try:
                command = self.command(function, inputs, answer)
                code = await run_command(command, context, stdout=output, stderr=output)
            except asyncio.CancelledError:
                context.partial_result = command_result(None, output)
                raise
            printed = command_result(code, output)
        try:
            return result_of(function, answer, code)
        except RunFailed as failure:
            hint = failure.hint or see_output(context)
            result = printed if failure.result is None else failure.result
            raise RunFailed(failure.message, hint=hint, code=failure.error_code, result=result) from None

    def command(self, function: str, inputs: Mapping[str, Any], answer: Path) -> Command:
        """Return the command that calls a function and writes to the file `answer` what it came to: see `result_of`.

        Raises:
            RunFailed: what is to name a function does not.
        """
        if not _FUNCTION.fullmatch(function):
            raise RunFailed(f"{shown(function)} is not package.module:function", hint="Name a function of a module.")
        request = {"function": function, "inputs": dict(inputs), "path": self._path}
        argv = [sys.executable, "-P", "-u", str(_MAIN), str(answer)]
        return Command(argv=argv, stdin=json.dumps(request).encode())


def result_of(function: str, answer: Path, code: int) -> Any:
    """Return what a function returned whose process has ended with exit code `code`.

    Raises:
        RunFailed: it cannot be imported, has other parameters, has raised, or has ended the process.
        InfrastructureFailed: it has raised that.
    """
    if not answer.exists():
        raise RunFailed(f"{function} {how_it_ended(code)} before it returned")
    return _outcome(_read(answer))


class PythonWorkflows:
    """The workflow runner `python`: a workflow is a function, as `package.module:function`."""

    references = (FUNCTIONS,)

    def __init__(self) -> None:
        self._functions = PythonFunctions()

    async def run(self, workflow: str, inputs: Mapping[str, Any], context: LeaseContext) -> Any:
        """Call the function: see `PythonFunctions.call`."""
        return await self._functions.call(workflow, inputs, context)


class PythonGoals:
    """The goal runner `python`: a goal is a function, and behind it a JSON object with its inputs, if it has any."""

    def __init__(self) -> None:
        self._functions = PythonFunctions()

    async def run(self, goal: str, context: LeaseContext) -> Any:
        """Call the function: see `PythonFunctions.call`."""
        function, _, rest = goal.strip().partition(" ")
        try:
            inputs = json.loads(rest) if rest.strip() else {}
        except ValueError as error:
            raise _not_inputs(str(error)) from None
        if not isinstance(inputs, dict):
            raise _not_inputs("it is no object")
        return await self._functions.call(function, inputs, context)


def _not_inputs(reason: str) -> RunFailed:
    return RunFailed(
        f"what follows the function is not JSON with its inputs: {reason}",
        hint='Write package.module:function {"name": "value"}.',
    )


def _read(answer: Path) -> dict[str, Any]:
    size = answer.stat().st_size
    if size > MAX_ANSWER_BYTES:
        raise RunFailed(f"the result is {size:,} bytes long", hint="Write it to the folder TOOLCRIB_ARTIFACTS instead.")
    read: dict[str, Any] = json.loads(answer.read_bytes())
    return read


def _outcome(answer: Mapping[str, Any]) -> Any:
    """Return the result, or raise what the function has raised."""
    if "result" in answer:
        return answer["result"]
    body = answer.get("failed") or answer["infrastructure"]
    if "infrastructure" in answer:
        raise InfrastructureFailed(body["message"], hint=body.get("hint"))
    raise RunFailed(body["message"], hint=body.get("hint"), code=body.get("code"), result=body.get("result"))

"""Calls one function in a process of its own, and writes to a file what it came to. Standard library only.

The call comes on standard input, in JSON: `{function, inputs, path}`; the file for the answer is the only argument.
The answer is `{result}`, or `{failed}` or `{infrastructure}` with `{message, hint, code, result}`; there is none if the
function ends the process.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NoReturn

Answer = dict[str, Any]


def main() -> int:
    """Make the call, and return the exit code: 0 if the function has returned something that can be sent."""
    call = json.load(sys.stdin)
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())  # the function has no input
    sys.path[:] = call["path"]
    answer = _answer(call["function"], call["inputs"])
    file = Path(sys.argv[1])
    unfinished = file.with_suffix(".part")
    unfinished.write_text(json.dumps(answer), encoding="ascii")
    unfinished.replace(file)
    return 0 if "result" in answer else 1


def _answer(name: str, inputs: dict[str, Any]) -> Answer:
    try:
        function = _function(name)
    except BaseException as error:  # noqa: BLE001 - whatever its module raises
        _print_traceback(error)
        return _refused(f"{name} cannot be imported: {_words(error)}", "Install its module on the host, or correct it.")
    try:
        inspect.signature(function).bind(**inputs)
    except (TypeError, ValueError) as error:
        return _refused(f"the inputs of {name} do not fit: {error}", "Correct the inputs.")
    try:
        result = _called(function, inputs)
    except BaseException as error:  # noqa: BLE001 - an exit of the function's is its end as well
        _print_traceback(error)
        return _failure(error)
    try:
        json.dumps(result, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return _refused(f"the result of {name} is not JSON: {error}", "Return JSON data from the function.")
    return {"result": result}


def _refused(message: str, hint: str) -> Answer:
    return {"failed": {"message": message[:4_000], "hint": hint}}


def _function(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError("it is not a function")
    return found  # type: ignore[no-any-return]


def _called(function: Callable[..., Any], inputs: dict[str, Any]) -> Any:
    signal.signal(signal.SIGTERM, _exit)
    result = function(**inputs)
    if inspect.isawaitable(result):
        import asyncio

        result = asyncio.run(_awaited(result))
    return result


async def _awaited(result: Awaitable[Any]) -> Any:
    import asyncio

    task = asyncio.ensure_future(result)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


def _exit(number: int, _: object) -> NoReturn:
    """End by an exception, so that the function can clean up."""
    raise SystemExit(128 + number)


def _failure(error: BaseException) -> Answer:
    context = sys.modules.get("toolcrib.activities.context")  # else it cannot be an error of toolcrib's
    if context is not None and isinstance(error, (context.RunFailed, context.InfrastructureFailed)):
        kind = "failed" if isinstance(error, context.RunFailed) else "infrastructure"
        body = {"message": error.message, "hint": error.hint, "code": error.error_code}
        return {kind: body | {"result": _sendable(getattr(error, "result", None))}}
    return {"failed": {"message": _words(error)}}


def _sendable(result: Any) -> Any:
    try:
        json.dumps(result, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return result


def _print_traceback(error: BaseException) -> None:
    """Print it as Python does, without what is above the function."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:4_000]


if __name__ == "__main__":
    sys.exit(main())

"""What can go wrong between a worker, its guard and a work."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolcrib.scheduling.errors import ToolcribError


class GuardLost(ToolcribError):
    """The guard, or the keeper of a work, is gone; what ran under it has been killed."""

    code = "guard_lost"
    default_hint = "Restart the worker. If it happens again, look for what kills it, such as the OOM killer (dmesg)."


class NotKilled(ToolcribError):
    """A process outlives SIGKILL: it hangs in the kernel, or belongs to another user. Its device is not free."""

    code = "not_killed"
    default_hint = "Look for processes in state D, or started through sudo: ps -eo pid,ppid,stat,user,cmd"


class SpawnFailed(ToolcribError):
    """A work was not started; nothing of it ran."""

    code = "could_not_start"

    @classmethod
    def because(
        cls, stage: str, number: int, argv: Sequence[str], env: Mapping[str, str], cwd: Path | str
    ) -> SpawnFailed:
        """Return the error for the errno `number` at `stage`: fork, stdio, cwd or exec."""
        name = argv[0]
        if stage == "cwd":
            return cls(
                f"could not start {name}: cannot enter the working folder {cwd}: {os.strerror(number)}",
                hint="Create the folder, or correct the setting that names it.",
            )
        if stage == "exec" and number in _EXPLAINED:
            reason, hint = _EXPLAINED[number]
            if "/" not in name:
                reason += f" in PATH ({env.get('PATH', 'not set')})" if number == errno.ENOENT else ""
            elif (Path(cwd) / name).is_dir():
                reason, hint = "it is a folder", "Give the path of the program in it."
            elif number == errno.ENOENT and (Path(cwd) / name).exists():
                reason, hint = _no_interpreter(Path(cwd) / name)
            return cls(f"could not start {name}: {reason.format(largest=_largest(argv, env))}", hint=hint)
        return cls(
            f"could not start {name}: {os.strerror(number)}",
            hint="Check the limits of this host: processes, memory, open files (ulimit -a).",
        )


_EXPLAINED = {
    errno.ENOENT: ("there is no such command", "Install it on this host, check PATH, or give its full path."),
    errno.ENOTDIR: ("there is no such command", "A part of its path is not a folder: correct the path."),
    errno.EACCES: ("it is not executable", "Allow it: chmod +x; check also that its folders may be entered."),
    errno.ENOEXEC: ("it is neither a program nor a script", "Begin a script with a line like #!/bin/sh."),
    errno.E2BIG: (
        "arguments and environment are too large; the largest is {largest}",
        "One may have 128 KiB, all together about 2 MiB: pass large text in a file.",
    ),
}


def _no_interpreter(script: Path) -> tuple[str, str]:
    """Say what is wrong with the first line of a script whose interpreter is not found."""
    try:
        with script.open("rb") as file:
            line = file.readline(256)
    except OSError:
        line = b""
    if line.endswith(b"\r\n"):
        reason = "its lines end as on Windows, and so the interpreter that the first one names is not found"
        return reason, f"Take the carriage returns out: sed -i 's/\\r$//' {script}"
    return "the interpreter that its first line names does not exist", "Install it, or correct the #! line."


def _largest(argv: Sequence[str], env: Mapping[str, str]) -> str:
    sizes = {f"argument {place}": len(os.fsencode(value)) for place, value in enumerate(argv)}
    sizes |= {f"the variable {name}": len(os.fsencode(value)) for name, value in env.items()}
    label = max(sizes, key=sizes.__getitem__)
    return f"{label} with {sizes[label]} bytes"

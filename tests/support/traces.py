"""What is left of a lease on this machine: processes, however well they hide."""

from __future__ import annotations

from pathlib import Path


def traces(*words: str) -> list[int]:
    """Return the living processes that mention one of `words` in their environment, command line or working folder.

    Chromium's children write over their environment.
    """
    wanted = [word.encode() for word in words]
    return [
        int(process.name)
        for process in Path("/proc").glob("[0-9]*")
        if any(word in _said_by(process) for word in wanted)
    ]


def _said_by(process: Path) -> bytes:
    said = b""
    for part in ("environ", "cmdline"):
        try:
            said += (process / part).read_bytes()
        except OSError:
            continue
    try:
        return said + bytes((process / "cwd").readlink())
    except OSError:
        return said

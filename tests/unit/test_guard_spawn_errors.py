"""A command that cannot be started says why, in two parts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from support.guarded import running_lab
from toolcrib.activities.guard import SpawnFailed

CRLF = "its lines end as on Windows, and so the interpreter that the first one names is not found"
PLAIN = {"PATH": os.environ["PATH"]}


async def _error(argv: Sequence[str], cwd: Path, env: Mapping[str, str] = PLAIN) -> SpawnFailed:
    """Return what is said about `argv`, having checked that the guard serves on."""
    async with running_lab() as lab:
        null = os.open(os.devnull, os.O_RDWR)
        with pytest.raises(SpawnFailed) as caught:
            await lab.guard.spawn("l", argv, env=env, cwd=cwd, stdin=null, stdout=null, stderr=null)
        os.close(null)
        assert await (await lab.start("true")).wait() == 0
    assert caught.value.error_code == "could_not_start"
    assert caught.value.hint
    return caught.value


async def _failure(argv: Sequence[str], cwd: Path, env: Mapping[str, str] = PLAIN) -> str:
    return (await _error(argv, cwd, env)).message


async def test_missing_command(tmp_path: Path) -> None:
    """A command that PATH does not find is named, with that PATH; one that was given by its path, without."""
    failed = "could not start {}: there is no such command"
    assert await _failure(["adbb"], tmp_path) == failed.format("adbb") + f" in PATH ({os.environ['PATH']})"
    assert await _failure(["adbb"], tmp_path, {}) == failed.format("adbb") + " in PATH (not set)"
    assert await _failure(["./adbb"], tmp_path) == failed.format("./adbb")
    assert await _failure(["/"], tmp_path) == "could not start /: it is a folder"
    for nothing in ([], [""]):
        assert await _failure(nothing, tmp_path) == "could not start anything: no command was given"


async def test_missing_folder(tmp_path: Path) -> None:
    """A working folder that is missing is told apart from a missing command."""
    message = await _failure(["true"], tmp_path / "gone")
    assert (
        message == f"could not start true: cannot enter the working folder {tmp_path}/gone: No such file or directory"
    )


@pytest.mark.parametrize(
    ("content", "mode", "reason"),
    [
        ("#!/bin/sh\n", 0o644, "it is not executable"),
        ("echo hello\n", 0o755, "it is neither a program nor a script"),
        ("#!/no/such/interpreter\n", 0o755, "the interpreter that its first line names does not exist"),
        ("#!/bin/sh\r\n", 0o755, CRLF),
    ],
)
async def test_file_that_cannot_be_run(content: str, mode: int, reason: str, tmp_path: Path) -> None:
    """A file that is there and cannot be run says which of the reasons it is."""
    script = tmp_path / "script"
    script.write_text(content)
    script.chmod(mode)
    error = await _error(["./script"], tmp_path)
    assert error.message == f"could not start ./script: {reason}"
    assert ("sed -i" in (error.hint or "")) == (reason == CRLF)


@pytest.mark.parametrize(
    ("argv", "env", "largest"),
    [
        (["true"], {**PLAIN, "GOAL": "x" * 200_000}, "the variable GOAL with 200000 bytes"),
        (["true", "é" * 80_000], {**PLAIN, "A": "x" * 1000}, "argument 1 with 160000 bytes"),
        (
            ["true"],
            {**PLAIN, **{f"V{n}": "x" * (100_000 + n) for n in range(30)}},
            "the variable V29 with 100029 bytes",
        ),
    ],
)
async def test_too_large(argv: list[str], env: dict[str, str], largest: str, tmp_path: Path) -> None:
    """Arguments and environment that the kernel refuses for their size name the largest of them."""
    assert (await _failure(argv, tmp_path, env)).endswith(f"too large; the largest is {largest}")


@pytest.mark.parametrize(
    ("argv", "env", "named"),
    [
        (["true", "a\0b"], {}, "argument 1"),
        (["true"], {"A": "a\0b"}, "variable A"),
        (["true"], {"A": "\ud800"}, "variable A"),
        (["true"], {"A=B": "c"}, "'A=B'"),
        (["true"], {"": "x"}, "''"),
        (["true"], {"a\0b": "x"}, r"'a\x00b'"),
    ],
)
async def test_what_no_exec_can_take(argv: list[str], env: dict[str, str], named: str, tmp_path: Path) -> None:
    """NUL bytes, halves of characters and impossible names of variables are refused by name."""
    assert named in await _failure(argv, tmp_path, env)


async def test_closed_file_descriptor(tmp_path: Path) -> None:
    """A standard stream that is not open is an error of this spawn, not the loss of the guard."""
    async with running_lab() as lab:
        with pytest.raises(SpawnFailed, match="Bad file descriptor"):
            await lab.guard.spawn("l", ["true"], env=PLAIN, cwd=tmp_path, stdin=9999, stdout=9999, stderr=9999)
        assert await (await lab.start("true")).wait() == 0

"""How runners run a command: with what input and variables, where, and what is read of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.guarded import noting_spawns, running_lab, until
from support.leases import lease_context
from toolcrib.activities.context import LeaseContext
from toolcrib.activities.runners.command import Command, run_command
from toolcrib.activities.runners.output import Output
from toolcrib.activities.runners.progress_lines import ProgressLines

BOTH = "echo out; echo err >&2; "


async def _run(command: Command, context: LeaseContext) -> tuple[int, str, str]:
    """Return the exit code, and what was printed on each stream."""
    with Output(ProgressLines(context.progress)) as out, Output(ProgressLines(context.progress)) as err:
        code = await run_command(command, context, stdout=out, stderr=err)
        return code, out.text, err.text


async def test_streams_apart_variables_and_folder(tmp_path: Path) -> None:
    """The streams are read apart, a variable of the command's own wins, it runs where it is told, without input."""
    script = BOTH + 'echo "$ONE $TOOLCRIB_TASK_ID"; pwd; cat; kill -9 $$'
    async with running_lab() as lab:
        context = lease_context(lab.guard, tmp_path)
        context.environment |= {"ONE": "lease", "TOOLCRIB_TASK_ID": "task-1"}
        found = await _run(Command(argv=["/bin/sh", "-c", script], env={"ONE": "mine"}, cwd=tmp_path), context)
    assert found == (-9, f"out\nmine task-1\n{tmp_path}\n", "err\n")


@pytest.mark.parametrize("reader", ["wc -c", "head -c 1 >/dev/null; exec wc -c </dev/stdin", "exec true"])
async def test_input_of_any_size(reader: str, tmp_path: Path) -> None:
    """Input that is larger than a pipe takes arrives whole, and a command that does not read it is not disturbed."""
    async with running_lab() as lab:
        command = Command(argv=["/bin/sh", "-c", reader], stdin=b"\0x" * 500_000)
        code, out, err = await _run(command, lease_context(lab.guard, tmp_path))
    assert (code, err) == (0, "")
    assert out.strip() in {"1000000", ""}
    assert bool(out) == ("wc" in reader)


async def test_cancelled_both_streams_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was printed on either stream until nothing was left of a cancelled command can be read."""
    script = "trap 'echo bye; echo bye >&2; exit 0' TERM; " + BOTH + "touch up; while :; do :; done"
    async with running_lab() as lab:
        context, spawned = lease_context(lab.guard, tmp_path), noting_spawns(lab.guard, monkeypatch)
        with Output(ProgressLines(context.progress)) as out, Output(ProgressLines(context.progress)) as err:
            command = Command(argv=["/bin/sh", "-c", script])
            running = asyncio.create_task(run_command(command, context, stdout=out, stderr=err))
            await until((context.folder / "up").exists)
            await spawned.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert (out.text, err.text) == ("out\nbye\n", "err\nbye\n")

"""What a work gets and gives back when nothing goes wrong."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.guarded import children, open_files, running_lab, until
from toolcrib.activities.guard import Guard, boottime, handle

LIBC_SIGNALS = 0x1_8000_0000
"""Signals 32 and 33 are the C library's own; Python cannot touch them, and some parents leave them ignored."""
GUARD_MAIN = Path(handle.__file__).with_name("guard_main.py")


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -KILL $$", -9), ("kill -TERM $$", -15)],
)
async def test_exit_code_is_the_commands_own(script: str, code: int) -> None:
    """A work's exit code is its command's, a signal that ended it is a negative number."""
    async with running_lab() as lab:
        work = await lab.start("/bin/sh", "-c", script)
        assert await work.wait() == code


async def test_wait_may_be_called_often_and_cancelled() -> None:
    """Every waiter gets the exit code; cancelling one disturbs neither the work nor the others."""
    async with running_lab() as lab:
        work = await lab.script("trap 'exit 7' TERM; echo up >&3; while :; do sleep 0.05; done")
        waiters = [asyncio.create_task(work.wait()) for _ in range(3)]
        await asyncio.sleep(0)
        waiters[0].cancel()
        await work.kill(grace=5)
        assert await asyncio.gather(*waiters[1:]) == [7, 7]
        assert waiters[0].cancelled()
        assert await work.wait() == 7


async def _printed(guard: Guard, argv: list[str], env: dict[str, str], cwd: Path, given: bytes = b"") -> bytes:
    out_read, out_write = os.pipe()
    in_read, in_write = os.pipe()
    os.write(in_write, given)
    os.close(in_write)
    work = await guard.spawn("l", argv, env=env, cwd=cwd, stdin=in_read, stdout=out_write, stderr=out_write)
    os.close(out_write)
    os.close(in_read)
    await work.wait()
    with os.fdopen(out_read, "rb") as output:
        return output.read()


async def test_command_gets_exactly_what_was_given(tmp_path: Path) -> None:
    """Arguments, environment, folder and standard streams arrive unchanged, whatever characters they hold."""
    env = {"PATH": os.defpath, "ODD": "two\nlines é \udcff"}
    argv = ["/bin/sh", "-c", 'cat; pwd; printf "[%s]" "$ODD" "$@" >&2', "x", "", "a 'b' \"c\" $HOME", "\\n", "-n", "é"]
    async with running_lab() as lab:
        output = await _printed(lab.guard, argv, env, tmp_path, given=b"input\n")
        names = await _printed(lab.guard, ["env"], env, tmp_path)
    expected = f"input\n{tmp_path}\n[two\nlines é \udcff][][a 'b' \"c\" $HOME][\\n][-n][é]"
    assert output == os.fsencode(expected)
    assert {line.split(b"=")[0] for line in names.splitlines()} >= {b"PATH", b"ODD"}
    assert b"TOOLCRIB" not in names


async def test_command_inherits_no_file_and_no_signal_setting(tmp_path: Path) -> None:
    """Only the standard streams are open in a work, and it neither ignores nor blocks a signal."""
    env = {"PATH": os.environ["PATH"]}
    async with running_lab() as lab:
        files = await _printed(lab.guard, ["ls", "/proc/self/fd"], env, tmp_path)
        signals = await _printed(lab.guard, ["grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"], env, tmp_path)
    assert files.split() == [b"0", b"1", b"2", b"3"]  # 3: the folder that ls reads
    _, blocked, _, ignored = signals.split()
    assert (int(blocked, 16) & ~LIBC_SIGNALS, int(ignored, 16) & ~LIBC_SIGNALS) == (0, 0)


async def test_fifty_works_at_once_keep_apart() -> None:
    """Fifty concurrent works each end with their own exit code."""
    async with running_lab() as lab:
        works = await asyncio.gather(*(lab.start("/bin/sh", "-c", f"exit {n}", lease=f"l{n}") for n in range(50)))
        assert await asyncio.gather(*(work.wait() for work in works)) == list(range(50))


async def test_nothing_accumulates_over_many_works() -> None:
    """After 200 works worker and guard have no more open files than before, and no process or zombie is left."""
    async with running_lab() as lab:
        await (await lab.start("true")).wait()
        gc.collect()
        await until(lambda: not children(lab.guard.pid))
        before = open_files(os.getpid()), open_files(lab.guard.pid)
        for _ in range(20):
            works = await asyncio.gather(*(lab.start("true") for _ in range(10)))
            await asyncio.gather(*(work.wait() for work in works))
        await until(lambda: not children(lab.guard.pid))
        assert open_files(os.getpid()) <= before[0]
        assert open_files(lab.guard.pid) <= before[1]


IMPORTS = """
import runpy, sys
runpy.run_path(sys.argv[1])
print(*(module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None)))
"""


def test_guard_uses_the_standard_library_only() -> None:
    """The guard's process imports nothing of toolcrib and nothing that was installed."""
    command = [sys.executable, "-I", "-S", "-c", IMPORTS, str(GUARD_MAIN)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    files = [Path(file) for file in ran.stdout.split()]
    assert {file.name for file in files if file.parent == GUARD_MAIN.parent} == {"guard_keeper.py", "guard_tree.py"}
    assert not [file for file in files if "site-packages" in file.parts]


def test_boottime_is_the_kernels() -> None:
    """`boottime()` is the uptime that the kernel reports, which counts sleep."""
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    assert 0 <= boottime() - uptime < 1


async def test_guard_ignores_the_signals_of_a_terminal() -> None:
    """Ctrl-C, SIGTERM and a hang-up end neither guard nor keeper: they live as long as the worker's socket."""
    async with running_lab() as lab:
        work = await lab.script("echo up >&3; exec sleep 300")
        (keeper,) = children(lab.guard.pid)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            os.kill(lab.guard.pid, number)
            os.kill(keeper, number)
        assert await (await lab.start("true")).wait() == 0
        assert not work.ended.done()
        assert os.getsid(lab.guard.pid) == lab.guard.pid

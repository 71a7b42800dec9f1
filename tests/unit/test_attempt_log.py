"""The log of an attempt: whole up to a limit, and never in the way of the work."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.guarded import running_lab, until
from support.leases import lease_context
from toolcrib.activities import attempt_log
from toolcrib.activities.attempt_log import TAIL, AttemptLog, LogCut
from toolcrib.activities.runners.shell import ShellRunner

REACHED = b"\n[toolcrib: the log's limit of 10 bytes is reached here]\n"


def written(log: AttemptLog, file: Path) -> bytes:
    """Close a log, and return what is in it."""
    log.close()
    log.ended.result(timeout=10)
    return file.read_bytes()


@given(st.lists(st.binary(max_size=20)), st.integers(0, 60), st.integers(1, 20))
def test_head_and_tail_are_kept_and_the_rest_is_counted(parts: list[bytes], limit: int, tail: int) -> None:
    """However an output is cut into pieces: its begin up to the limit, its end, and how much is between them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attempt_log, "TAIL", tail)
        cut = LogCut(limit)
        kept = b"".join([*map(cut.take, parts), cut.end()])
    whole = b"".join(parts)
    beyond = whole[limit:]
    if not beyond:
        assert kept == whole
        return
    said = f"\n[toolcrib: the log's limit of {limit} bytes is reached here]\n".encode()
    omitted = len(beyond) - tail
    gap = f"\n[toolcrib: {omitted:,} bytes are left out here]\n".encode() if omitted > 0 else b""
    assert kept == whole[:limit] + said + gap + beyond[-tail:]


async def test_it_is_written_as_it_comes(tmp_path: Path) -> None:
    """What was printed can be read while the attempt goes on, byte for byte; after the end nothing is added."""
    log = AttemptLog(tmp_path / "log", 1_000)
    assert (tmp_path / "log").read_bytes() == b""
    log.write(b"\xff\x00 one\r")
    log.line("zwei \udcff")
    await until(lambda: (tmp_path / "log").read_bytes() == b"\xff\x00 one\rzwei ?\n")
    assert written(log, tmp_path / "log") == b"\xff\x00 one\rzwei ?\n"
    log.write(b"late")
    log.close()
    assert (tmp_path / "log").read_bytes() == b"\xff\x00 one\rzwei ?\n"


def test_where_it_is_cut_it_says_so_at_once(tmp_path: Path) -> None:
    """Also an attempt whose end is never told, since its host died, has a log that says that it was cut."""
    log = AttemptLog(tmp_path / "log", 10)
    log.write(b"0123456789" + b"x" * (TAIL + 5) + b"END")
    while (tmp_path / "log").stat().st_size < 10 + len(REACHED):
        time.sleep(0.001)
    assert (tmp_path / "log").read_bytes() == b"0123456789" + REACHED
    end = b"\n[toolcrib: 8 bytes are left out here]\n" + b"x" * (TAIL - 3) + b"END"
    assert written(log, tmp_path / "log") == b"0123456789" + REACHED + end


def test_a_full_disk_stops_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Writing neither waits nor raises, and the host's own log has a warning, once."""
    log = AttemptLog(Path("/dev/full"), 1_000)
    log.write(b"one")
    log.write(b"two")
    log.close()
    log.ended.result(timeout=10)
    assert capsys.readouterr().out.count("a log is not whole; the work goes on") == 1


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file of this process become larger than `size`, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_a_full_disk_did_not_take_is_said_to_be_missing(tmp_path: Path) -> None:
    """When there is room again the log goes on, and says how much is missing, where, and why."""
    file = tmp_path / "log"
    log = AttemptLog(file, 1_000)
    with largest_file(5):
        log.write(b"0123456789")
        while not log._missing:
            time.sleep(0.001)
    log.write(b"after")
    assert written(log, file) == b"01234\n[toolcrib: 5 bytes are missing here: File too large]\nafter"


@pytest.fixture
def stalled(tmp_path: Path) -> Iterator[Path]:
    """A file to which 64 KiB can be written, and then nothing until somebody reads it."""
    fifo = tmp_path / "stalled"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    yield fifo
    os.close(reader)


def test_a_disk_that_hangs_costs_a_bounded_amount_of_memory(stalled: Path) -> None:
    """What is more than that is left out, and said to be missing."""
    log = AttemptLog(stalled, 1 << 40)
    for _ in range(100):
        log.write(b"x" * (1 << 20))
    held = sum(len(part) for part in log._waiting if isinstance(part, bytes))
    assert held <= attempt_log.MOST_WAITING
    assert log.behind
    log.close()
    read, was_written = b"", False
    with stalled.open("rb", buffering=0) as reader:
        while not was_written:
            was_written = log.ended.done()  # first: then the last of it is read
            read = (read + reader.read(1 << 20))[-1_000:]
    assert b"bytes are missing here: the disk did not keep up]\n" in read


async def test_a_disk_that_hangs_does_not_hold_up_the_work(stalled: Path, tmp_path: Path) -> None:
    """The command waits for a moment, and then its output is read on; its result is whole."""
    async with running_lab() as lab:
        context = replace(lease_context(lab.guard, tmp_path), log=AttemptLog(stalled, 1 << 40))
        async with asyncio.timeout(30):
            result = await ShellRunner().run("head -c 30000000 /dev/zero | tr '\\0' x; echo END", context)
    assert result["output"].endswith("END\n")
    assert result["omitted_bytes"] + len(result["output"]) == 30_000_004


async def test_a_log_has_all_that_was_printed_however_fast(tmp_path: Path) -> None:
    """A command that prints as fast as it can has all of it in its log, as long as the disk keeps up."""
    async with running_lab() as lab:
        context = lease_context(lab.guard, tmp_path)
        goal = "echo '::toolcrib progress 0.5'; yes | head -c 60000000; echo '::toolcrib pro'; printf '::tool'"
        await ShellRunner().run(goal, context)
    assert isinstance(context.log, AttemptLog)
    log = written(context.log, tmp_path / "log")
    assert log[:60_000_000] == b"y\n" * 30_000_000
    assert log[60_000_000:] == (
        b"::toolcrib pro\ntoolcrib: 'pro' is neither 'progress VALUE [MESSAGE]' nor 'percent'\n::tool"
    )

"""A task that prints ten megabytes a second harms neither its host nor the tasks beside it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import psutil
import pytest

from support.lab import Lab, slot, until_status
from support.processes import host_file, toolcrib

FLOOD = """
import os, sys, time
begun, written = time.monotonic(), 0
while written < float(sys.argv[1]) * 10_000_000:
    written += os.write(1, b"y" * 99_999 + b"\\n")
    time.sleep(max(0, written / 10_000_000 - (time.monotonic() - begun)))
print(f"wrote {written}")
"""
ROOM = 40_000_000
"""Bytes that a worker may grow by while it serves a dozen tasks; what is printed meanwhile is more than twice that."""


@pytest.mark.parametrize("seconds", [10, pytest.param(60, marks=pytest.mark.long)])
async def test_a_flood_of_output(lab: Lab, tmp_path: Path, seconds: int) -> None:
    """The host's memory stays flat, others run beside it at their first attempt, and all bytes are accounted for."""
    crib = await lab.pool()
    (tmp_path / "flood.py").write_text(FLOOD)
    file = host_file(tmp_path, "lab-1", [slot("a"), slot("b")])
    async with toolcrib(lab.client, tmp_path, "worker", "--role", "host", "--config", str(file)) as process:
        worker = psutil.Process(process.pid)
        await (await crib.submit("echo warm")).result()
        before, peak, beside = worker.memory_info().rss, 0, 0
        flood = await crib.submit(f"exec {sys.executable} {tmp_path}/flood.py {seconds}")
        await until_status(flood, "dispatched")
        while (await flood.status()).status == "dispatched":
            quick = await crib.submit(f"echo {beside}", max_attempts=1)
            assert (await quick.result())["output"] == f"{beside}\n"
            beside += 1
            peak = max(peak, worker.memory_info().rss)
            await asyncio.sleep(0.5)
        result = await flood.result()
    assert beside > 2
    assert peak - before < ROOM
    written = int(result["output"].rpartition(" ")[2])
    assert written >= seconds * 10_000_000
    assert len(result["output"]) + result["omitted_bytes"] == written + len(f"wrote {written}\n")

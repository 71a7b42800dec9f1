"""The highest fencing number that each device of a host has served: a lease that comes with no higher one is over."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path

import structlog

_log = structlog.get_logger(__name__)


class ServedFencing:
    """Keeps the numbers in files, so that they survive the worker. To be asked under the device's lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def serve(self, device_id: str, fencing: int) -> int | None:
        """Keep `fencing` as served, for good; or return the number that was served already and is not lower.

        However it is cancelled, nothing is written after it has ended.

        Raises:
            OSError: the number cannot be kept.
        """
        # In a thread, since some disks take a second, and the loop renews leases.
        writing = asyncio.ensure_future(asyncio.to_thread(self._serve, device_id, fencing))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            while not writing.done():
                await _undisturbed(writing)
            raise

    def highest(self, device_ids: Iterable[str]) -> dict[str, int]:
        """Return the highest number that each of these devices has served, 0 for none. It reads files."""
        return {device_id: _read(self._folder / f"{device_id}.served") for device_id in device_ids}

    def _serve(self, device_id: str, fencing: int) -> int | None:
        file = self._folder / f"{device_id}.served"
        served = _read(file)
        if served >= fencing:
            return served
        self._folder.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        with new.open("w", encoding="ascii") as written:
            written.write(f"{fencing}\n")
            written.flush()
            os.fsync(written.fileno())
        new.replace(file)
        return None


async def _undisturbed(writing: asyncio.Future[int | None]) -> None:
    try:
        await asyncio.wait([writing])
    except asyncio.CancelledError:
        return


def _read(file: Path) -> int:
    try:
        return int(file.read_text(encoding="ascii"))
    except FileNotFoundError:
        return 0
    except ValueError:
        _log.warning("no fencing number in the file; any is served", file=str(file))
        return 0

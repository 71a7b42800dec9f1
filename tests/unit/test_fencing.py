"""A device serves rising fencing numbers only, over restarts as well."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from toolcrib.activities.fencing import ServedFencing


@pytest.mark.parametrize("device", ["slot-1", "..", ":", "a" * 64])
async def test_only_a_higher_number_is_served(tmp_path: Path, device: str) -> None:
    """A number that is not higher than the highest served is refused with that one, also by the next worker."""
    served = ServedFencing(tmp_path / "served")
    assert await served.serve(device, 7) is None
    for again in (served, ServedFencing(tmp_path / "served")):
        assert [await again.serve(device, number) for number in (7, 6)] == [7, 7]
    assert await ServedFencing(tmp_path / "served").serve(device, 8) is None
    assert await served.serve(device, 7) == 8


async def test_devices_have_numbers_of_their_own(tmp_path: Path) -> None:
    """What one device has served says nothing of another."""
    served = ServedFencing(tmp_path)
    assert await served.serve("a", 9) is None
    assert await served.serve("a.new", 3) is None
    assert await served.serve("b", 1) is None
    assert await served.serve("a", 9) == 9


async def test_a_number_that_cannot_be_kept_is_an_error(tmp_path: Path) -> None:
    """Where nothing can be written nothing is served."""
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        await ServedFencing(tmp_path / "file").serve("a", 1)


async def test_a_file_without_a_number_forbids_nothing(tmp_path: Path) -> None:
    """A file that a broken disk has left empty does not take a device out of service."""
    (tmp_path / "a.served").write_text("")
    assert await ServedFencing(tmp_path).serve("a", 1) is None
    assert await ServedFencing(tmp_path).serve("a", 1) == 1


async def test_nothing_is_written_after_a_cancellation_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelling waits for a write that is under way, however often: the lock is not let go before."""
    begun, may_end = threading.Event(), threading.Event()
    replace = Path.replace

    def slow(self: Path, target: Path) -> Path:
        begun.set()
        assert may_end.wait(30)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", slow)
    serving = asyncio.create_task(ServedFencing(tmp_path).serve("a", 5))
    await asyncio.to_thread(begun.wait, 30)
    for _ in range(3):
        serving.cancel()
        await asyncio.sleep(0)
        assert not serving.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert await ServedFencing(tmp_path).serve("a", 5) == 5

"""What a step prints, kept in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolcrib.activities.step_log import StepLog


def kept(log: StepLog, folder: Path) -> bytes:
    """Return what the log has."""
    return (folder / log.name).read_bytes()


def test_all_is_kept_up_to_the_limit(tmp_path: Path) -> None:
    """It is whole as long as the limit is not passed."""
    with StepLog(tmp_path, "s-1.stdout", limit=6) as log:
        log.write(b"one")
        log.write(b"two")
        assert log.whole
    assert kept(log, tmp_path) == b"onetwo"


@pytest.mark.parametrize("pieces", [[b"onetwo", b"three"], [b"onetwothree"]])
def test_beyond_the_limit_it_says_so_and_is_not_whole(tmp_path: Path, pieces: list[bytes]) -> None:
    """No other step may take it for all that was printed."""
    with StepLog(tmp_path, "s-1.stdout", limit=6) as log:
        for piece in [*pieces, b"more"]:
            log.write(piece)
        assert not log.whole
    assert kept(log, tmp_path) == b"onetwo\n[toolcrib: the limit of 6 bytes is reached here]\n"


def test_what_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    """Neither is it whole."""
    (tmp_path / "steps").write_text("a file where the folder would be")
    with StepLog(tmp_path, "s-1.stdout") as log:
        log.write(b"one")
        log.write(b"two")
        assert not log.whole


def test_nothing_printed_is_no_file(tmp_path: Path) -> None:
    """A step that says nothing leaves nothing."""
    with StepLog(tmp_path, "s-1.stdout") as log:
        pass
    assert not log.whole
    assert list(tmp_path.iterdir()) == []

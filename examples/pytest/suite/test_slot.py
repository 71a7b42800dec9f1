"""A suite as it may be anywhere; it runs on whatever slot it was given."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def test_it_has_a_name(slot: str) -> None:
    """The slot is known by its name."""
    assert slot.startswith("slot-")


def test_it_has_room(tmp_path: Path) -> None:
    """There is space for what a test writes."""
    assert shutil.disk_usage(tmp_path).free > 1_000_000


def test_it_has_a_processor() -> None:
    """Something computes."""
    assert os.cpu_count()


def test_it_has_a_crane(slot: str) -> None:
    """No slot has one: this fails."""
    assert Path("/dev/crane").exists(), f"{slot} has no crane"

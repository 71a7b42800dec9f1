"""Tells this run of this machine from all others."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


def machine_id(locks: Path) -> str:
    """Return a name that two workers share only if one device lock keeps them apart.

    That takes the same kernel, since it was started, and the same folder of locks: containers of one image have one
    machine-id and one path of that folder, and yet do not see each other's locks.
    """
    where = locks.stat()
    return hashlib.sha256(f"{_BOOT.read_text().strip()} {where.st_dev} {where.st_ino}".encode()).hexdigest()[:32]

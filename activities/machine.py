"""What this machine is called, and what tells this run of it from all others."""

from __future__ import annotations

import hashlib
import re
import socket
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


def machine_name() -> str:
    """Return the machine's name, as far as it can be part of a host's id."""
    return re.sub(r"[^A-Za-z0-9._:-]", "-", socket.gethostname())[:64] or "localhost"

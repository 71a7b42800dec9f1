"""Sizes as people write them."""

from __future__ import annotations

import re
from typing import Final

from toolcrib.scheduling.errors import InvalidRequest

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30

_UNITS: Final = {"": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": 1 << 40}
_SIZE: Final = re.compile(r"([0-9]{1,18}) ?(|KiB|MiB|GiB|TiB)")


def parse_size(text: str, field: str) -> int:
    """Return the bytes that `text` means: `4096`, `64KiB`, `64MiB`, `10GiB` or `2TiB`.

    Raises:
        InvalidRequest: it is none of these; the message names `field`.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise InvalidRequest(f"{field}: {text!r} is not a size such as 64KiB, 64MiB, 10GiB or a number of bytes")
    return int(match[1]) * _UNITS[match[2]]


def size_text(size: int) -> str:
    """Return a size in the largest unit that it has no more digits in than needed, such as `64 MiB` or `1.4 GiB`."""
    unit = next((unit for unit in ("TiB", "GiB", "MiB", "KiB") if size >= _UNITS[unit]), "")
    return f"{size / _UNITS[unit]:.4g} {unit}" if unit else f"{size} bytes"

"""How messages quote what somebody sent, which may be of any size, depth and kind."""

from __future__ import annotations

from reprlib import Repr
from typing import Any, Final

MAX_SHOWN: Final = 60
"""Characters of a value that a message quotes."""

_SHORT: Final = Repr()
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = MAX_SHOWN


def shown(value: Any) -> str:
    """Return `value` as Python writes it, but cut: whatever it is, this is short and printable."""
    try:
        text = _SHORT.repr(value)
    except ValueError:  # Python does not write out whole numbers of more than some thousand digits
        text = "a number of too many digits"
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."


def plain(name: str) -> str:
    """Return a name that somebody made up as it is if it is short and printable, else as `shown` does."""
    return name if name.isprintable() and len(name) <= MAX_SHOWN else shown(name)

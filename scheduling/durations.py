"""Durations as people write them."""

from __future__ import annotations

import re
from math import isfinite
from typing import Final

from toolcrib.scheduling.errors import InvalidRequest

_NUMBER: Final = r"([0-9]+(?:\.[0-9]+)?)"
_SECONDS: Final = re.compile(_NUMBER)
_UNITS: Final = re.compile("".join(rf"(?:{_NUMBER}{unit})?" for unit in "dhms"))
_ISO_8601: Final = re.compile(rf"P(?:{_NUMBER}D)?(?:T(?=[0-9])(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?")
_SECONDS_PER_UNIT: Final = (86_400, 3_600, 60, 1)


def parse_duration(text: str, field: str) -> float:
    """Return the seconds that `text` means: `90`, `30s`, `5m`, `1h30m`, `2d` or, as ISO 8601 has it, `PT5M`.

    Raises:
        InvalidRequest: it is none of these, or too long to be a number; the message names `field`.
    """
    written = text.strip()
    if _SECONDS.fullmatch(written):
        seconds = float(written)
    else:
        match = _UNITS.fullmatch(written) or _ISO_8601.fullmatch(written)
        parts = match.groups() if match else ()
        if not any(parts):
            raise InvalidRequest(
                f"{field}: {text!r} is not a duration such as 30s, 5m, 1h30m, PT5M or a number of seconds"
            )
        seconds = sum(float(part or 0) * unit for part, unit in zip(parts, _SECONDS_PER_UNIT, strict=True))
    if not isfinite(seconds):
        raise InvalidRequest(f"{field}: {text[:20]!r}... is too long a duration")
    return seconds

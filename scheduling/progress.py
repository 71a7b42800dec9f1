"""Which reports of progress are well-formed."""

from __future__ import annotations

import math
from typing import Final

from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.messages import Progress
from toolcrib.scheduling.quoting import shown

MAX_MESSAGE_LENGTH: Final = 500


def checked_progress(lease_id: str, value: float, message: str | None) -> Progress:
    """Return a report of progress.

    Raises:
        InvalidRequest: the value is not from 0 to 1, or the message too long or no text that can be sent.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        raise InvalidRequest(f"progress: {value!r} is not a number from 0 to 1")
    if message is not None and len(message) > MAX_MESSAGE_LENGTH:
        raise InvalidRequest(f"message: {len(message)} characters, the limit is {MAX_MESSAGE_LENGTH}")
    if message is not None and not is_encodable(message):
        raise InvalidRequest(f"message: {message!r} has half a character in it")
    return Progress(lease_id=lease_id, value=float(value), message=message)


def parse_progress(text: str) -> float:
    """Return the progress that is written as a number from 0 to 1 or as a percentage, of whatever size.

    Raises:
        InvalidRequest: it is no number.
    """
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise InvalidRequest(f"progress: {shown(text)} is no number") from None


def is_encodable(text: str) -> bool:
    """Return whether a text can be sent: one with half a character in it cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

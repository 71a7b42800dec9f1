"""What to give for a field that was refused: a valid value, in words or as an example."""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = "Give 1 to 64 of the characters A-Z a-z 0-9 . _ : -"
_LINE: Final = "Give one line of 1 to 200 printable characters."
_TEXT: Final = "Shorten it, or take out what cannot be shown."
_SECONDS: Final = "Give a duration such as 30s, 5m or 1h30m (in Python and JSON: seconds), up to 30 days."

_HINTS: Final = {
    "goal": "Give some text of at most 128 KiB, such as 'echo hello'.",
    "workflow": "Give a workflow's name, or its name and version: login, or login@2.",
    "work": "Give the name under which an application registered it.",
    "inputs": 'Give a JSON object of at most 256 KiB, such as {"url": "x"}.',
    "name": _LINE,
    "group_id": _LINE,
    "group_name": _LINE,
    "driver_type": f"{_NAME}, such as local. See: toolcrib device list",
    "device_id": f"{_NAME}, such as slot-1. See: toolcrib device list",
    "host_id": f"{_NAME}, such as lab-1. See: toolcrib host list",
    "pool": f"{_NAME}, such as phones. See: toolcrib pool list",
    "key": "Give 1 to 200 of the characters A-Z a-z 0-9 . _ -, such as nightly-2026-11-30.",
    "tag": "Give at most 64 tags, each of 1 to 128 printable characters, such as gpu.",
    "tags": "Give at most 64 tags, each of 1 to 128 printable characters, such as gpu.",
    "priority": "Give a whole number from 1, which is served first, to 5.",
    "timeout": _SECONDS,
    "queue_timeout": _SECONDS,
    "max_attempts": "Give a whole number from 1 to 100.",
    "limit": "Give a whole number from 1.",
    "strategy": "See which there are: toolcrib strategies",
    "max_concurrent": "Give a whole number from 1, or none (in Python: None).",
    "max_queue_depth": "Give a whole number from 1 to 20000.",
    "claim_timeout": "Give a duration from 1s to a day, such as 30s (in Python: seconds).",
    "lease_ttl": "Give a duration from 3s to a day, such as 15s (in Python: seconds).",
    "progress": "Give a number from 0 to 1, such as 0.4, or a percentage, such as 40%.",
    "message": _TEXT,
    "reason": "Give up to 120 printable characters.",
    "result": 'Give JSON of at most 256 KiB, such as {"files": 3}.',
    "slots": "Give a whole number from 1.",
}
_FIELD: Final = re.compile(r"(\w+)(?:\[\d+\])?: ")


def hint_for(message: str) -> str | None:
    """Return the hint for the field with which a message begins; None if there is none for it."""
    named = _FIELD.match(message)
    return _HINTS.get(named[1]) if named else None

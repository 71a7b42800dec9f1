"""The command that a host's file fixes for `exec`, with places for what belongs to a lease."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Final

from toolcrib.scheduling.errors import InvalidRequest

GOAL: Final = "goal"
GOAL_FILE: Final = "goal_file"
PLACES: Final = (GOAL, GOAL_FILE, "task_id", "attempt", "device_id", "host_id", "artifacts")
"""What may stand in braces in a word; a brace itself is written twice."""


def checked_command(words: Sequence[str], path: str) -> tuple[str, ...]:
    """Return the words of a command.

    Raises:
        InvalidRequest: there are none, or the program itself depends on the task; `path` is where they stand.
    """
    if not words or not words[0]:
        raise InvalidRequest(f"{path}: names no command")
    if places(words[0]):
        raise InvalidRequest(f"{path}: the command itself may have no place in braces; the words after it may")
    return tuple(words)


def checked_word(word: str, path: str) -> str:
    """Return a word of a command.

    Raises:
        InvalidRequest: a place in it is unknown, or a brace stands alone; `path` is where it stands.
    """
    if "\0" in word:
        raise InvalidRequest(f"{path}: holds a NUL character, which no command can take")
    try:
        found = list(Formatter().parse(word))
    except ValueError as error:
        raise InvalidRequest(f"{path}: {error}; write {{{{ and }}}} for braces") from None
    for _, place, form, conversion in found:
        if place is not None and (place not in PLACES or form or conversion):
            written = place + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")
            raise InvalidRequest(
                f"{path}: there is no place {{{written}}}; known: {', '.join(PLACES)}; write {{{{ and }}}} for braces"
            )
    return word


def places(*words: str) -> list[str]:
    """Return which places the words have."""
    return [place for word in words for _, place, _, _ in Formatter().parse(word) if place is not None]


def filled(word: str, values: Mapping[str, str]) -> str:
    """Return a word with its places filled; what is put there is not looked at."""
    return "".join(text + ("" if place is None else values[place]) for text, place, _, _ in Formatter().parse(word))

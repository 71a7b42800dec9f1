"""Workflow references: `name` or `name@version`, as tasks ask for them and as hosts say which they can run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.quoting import shown

FUNCTIONS: Final = "*:*"
"""Said by who runs any function, `module:function`, and nothing else."""
MAX_REFERENCES: Final = 1_000
"""Of one host and driver type."""
MAX_NEAR: Final = 3
"""So many that may be meant are named."""
MAX_COMPARED: Final = 100
"""So many names are searched for one that looks like what was asked."""
_REFERENCE: Final = re.compile(r"[A-Za-z0-9._:-]{1,200}(@[A-Za-z0-9._-]{1,64})?")

Offered = tuple[str, ...] | None
"""The references that somebody runs; None: that is not known, and anything may be tried."""


def is_reference(text: str) -> bool:
    """Return whether `text` has the shape of a workflow reference."""
    return _REFERENCE.fullmatch(text) is not None


def checked_references(references: Sequence[str], field: str) -> tuple[str, ...]:
    """Return what a host says that it runs, in its order and without repeats.

    Raises:
        InvalidRequest: one is malformed, or there are too many.
    """
    for reference in references:
        if reference != FUNCTIONS and not is_reference(reference):
            raise InvalidRequest(f"{field}: {shown(reference)} is not NAME or NAME@VERSION")
    if len(references) > MAX_REFERENCES:
        raise InvalidRequest(f"{field}: {len(references)} references, the limit is {MAX_REFERENCES}")
    return tuple(dict.fromkeys(references))


def runs(offered: Offered, wanted: str) -> bool:
    """Return whether who has `offered` runs `wanted`: exactly that version, or any if none is asked for."""
    if offered is None or wanted in offered or (FUNCTIONS in offered and ":" in wanted):
        return True
    return "@" not in wanted and any(reference.partition("@")[0] == wanted for reference in offered)


def near(wanted: str, offered: Iterable[str]) -> list[str]:
    """Return those of `offered` that may be meant by `wanted`: other versions of it, else names that look like it."""
    by_name: dict[str, list[str]] = {}
    for reference in dict.fromkeys(offered):
        if reference == FUNCTIONS:
            continue
        by_name.setdefault(reference.partition("@")[0], []).append(reference)
    name = wanted.partition("@")[0]
    alike = [name] if name in by_name else get_close_matches(name, list(by_name)[:MAX_COMPARED], n=1)
    return by_name[alike[0]][-MAX_NEAR:] if alike else []

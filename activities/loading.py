"""Finds what a setting names: a runner or driver that is shipped, installed beside toolcrib, or given by its path."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from toolcrib.scheduling.errors import InvalidRequest


def load(reference: str, group: str, shipped: Mapping[str, str], what: str, methods: Sequence[str] = ()) -> Any:
    """Return the object that `reference` names; a class or function is called to make it.

    Args:
        reference: a name in `shipped`, the name of an entry point, or `module:attribute`.
        group: the group of entry points to search.
        shipped: `module:attribute` by name; these win over entry points.
        what: what it is to be, for messages, such as `driver`.
        methods: the methods it must have.

    Raises:
        InvalidRequest: nothing has that name, it cannot be loaded, or a method is missing.
    """
    point = _entry_point(reference, group, shipped, what)
    try:
        found = point.load()
        made = found() if inspect.isclass(found) or inspect.isroutine(found) else found
    except Exception as error:
        raise _not_loaded(what, reference, error) from error
    for method in methods:
        if not callable(getattr(made, method, None)):
            raise InvalidRequest(
                f"{what} {reference!r} ({point.value}) has no method {method}", hint="Name an object that has it."
            )
    return made


def _entry_point(reference: str, group: str, shipped: Mapping[str, str], what: str) -> metadata.EntryPoint:
    path = reference if ":" in reference else shipped.get(reference)
    if path:
        return metadata.EntryPoint(reference, path, group)
    installed = metadata.entry_points(group=group)
    for point in installed:
        if point.name == reference:
            return point
    known = sorted({*shipped, *installed.names})
    raise InvalidRequest(
        f"there is no {what} {reference!r}; known: {', '.join(known) or 'none'}",
        hint=f"Use a known name, install the package that brings it (entry point {group}), or write module:attribute.",
    )


def _not_loaded(what: str, reference: str, error: Exception) -> InvalidRequest:
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return InvalidRequest(
        f"{what} {reference!r} cannot be loaded: {reason}",
        hint="Correct the reference, or install what it needs into the environment of this worker.",
    )

"""Strategies, workflows and activities that third parties bring."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from toolcrib.activities.brought import Brought, activity_type, workflow_type
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.strategies import STRATEGIES

STRATEGY_GROUP: Final = "toolcrib.strategies"
WORKFLOWS: Final = "WORKFLOWS"
ACTIVITIES: Final = "ACTIVITIES"
"""A module lists under these names what hosts may run under leases."""


def load_plugins(modules: Sequence[str] = ()) -> Brought:
    """Import `modules`, register the strategies of installed packages, and return what the modules list.

    From now on modules are also looked for in the current folder, those of runners and drivers as well.

    Raises:
        InvalidRequest: something cannot be imported or registered, or is listed wrongly; the message names it.
    """
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    brought = Brought()
    for name in dict.fromkeys(modules):
        try:
            brought += _listed(importlib.import_module(name))
        except Exception as error:
            raise _broken(f"plugin {name!r}", error) from error
    _check_unique("workflow", [workflow_type(cls) for cls in brought.workflows])
    _check_unique("activity", [activity_type(function) for function in brought.activities])
    for point in metadata.entry_points(group=STRATEGY_GROUP):
        if point.name not in STRATEGIES:
            try:
                STRATEGIES.register(point.name, point.load()())
            except Exception as error:
                raise _broken(f"strategy {point.name!r} of entry point {point.value}", error) from error
    return brought


def _listed(module: ModuleType) -> Brought:
    """Return what a module lists, each of which is what it is listed as."""
    workflows: Sequence[type] = getattr(module, WORKFLOWS, ())
    activities: Sequence[Callable[..., Any]] = getattr(module, ACTIVITIES, ())
    for cls in workflows:
        workflow_type(cls)
    for function in activities:
        activity_type(function)
    return Brought(workflows=tuple(workflows), activities=tuple(activities))


def _check_unique(kind: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequest(f"two plugins bring the {kind} {name!r}", hint="Give one of the two another name.")


def _broken(what: str, error: Exception) -> InvalidRequest:
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return InvalidRequest(f"{what} cannot be loaded: {reason}", hint="Check its name and the module search path.")

"""Strategies and other parts that third parties bring."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.strategies import STRATEGIES

STRATEGY_GROUP: Final = "toolcrib.strategies"


def load_plugins(modules: Sequence[str] = ()) -> None:
    """Import `modules`, which register what they bring, and register the strategies of installed packages.

    Modules are also looked for in the current folder.

    Raises:
        InvalidRequest: something cannot be imported or registered; the message names it.
    """
    if modules and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:
            raise _broken(f"plugin {module!r}", error) from error
    for point in metadata.entry_points(group=STRATEGY_GROUP):
        if point.name not in STRATEGIES:
            try:
                STRATEGIES.register(point.name, point.load()())
            except Exception as error:
                raise _broken(f"strategy {point.name!r} of entry point {point.value}", error) from error


def _broken(what: str, error: Exception) -> InvalidRequest:
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return InvalidRequest(f"{what} cannot be loaded: {reason}", hint="Check its name and the module search path.")

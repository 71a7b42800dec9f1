"""What the worker of a host's work queue is to have, beside what is toolcrib's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolcrib.scheduling.errors import InvalidRequest


@dataclass(frozen=True, kw_only=True)
class Brought:
    """Workflow classes and activities, decorated as Temporal wants them."""

    workflows: tuple[type, ...] = ()
    activities: tuple[Callable[..., Any], ...] = ()

    def __add__(self, other: Brought) -> Brought:
        """Return what both bring, each once."""
        return Brought(
            workflows=tuple(dict.fromkeys(self.workflows + other.workflows)),
            activities=tuple(dict.fromkeys(self.activities + other.activities)),
        )


def workflow_type(cls: type) -> str:
    """Return the name under which a workflow class is started.

    Raises:
        InvalidRequest: it is not decorated with `@workflow.defn`, or takes any name.
    """
    name = getattr(getattr(cls, "__temporal_workflow_definition", None), "name", None)
    if not isinstance(name, str):
        raise InvalidRequest(f"{cls!r} is no workflow", hint="Decorate the class with @workflow.defn.")
    return name


def activity_type(function: Callable[..., Any]) -> str:
    """Return the name under which an activity is started.

    Raises:
        InvalidRequest: it is not decorated with `@activity.defn`, or takes any name.
    """
    name = getattr(getattr(function, "__temporal_activity_definition", None), "name", None)
    if not isinstance(name, str):
        raise InvalidRequest(f"{function!r} is no activity", hint="Decorate the function with @activity.defn.")
    return name

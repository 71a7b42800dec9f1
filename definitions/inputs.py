"""What a task gives to a definition, checked against what the definition takes."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from toolcrib.definitions.input_types import Scalar, as_input
from toolcrib.definitions.model import WorkflowDefinition
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.quoting import plain


def checked_inputs(definition: WorkflowDefinition, given: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return all inputs of a definition: those that are given, in their types, and the defaults of the others.

    Raises:
        InvalidRequest: one is unknown, missing or of another type; the message names it.
    """
    known = definition.inputs
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            advice = f"did you mean {close[0]}?" if close else f"it takes: {', '.join(known) or 'none'}"
            raise InvalidRequest(f"inputs.{plain(name)}: {definition.reference} has no such input; {advice}")
    found: dict[str, Scalar] = {}
    for name, spec in known.items():
        value = given.get(name, spec.default)
        if value is None:
            raise InvalidRequest(f"inputs.{name}: {definition.reference} needs it, a {spec.type}")
        try:
            found[name] = as_input(value, spec.type)
        except ValueError as error:
            raise InvalidRequest(f"inputs.{name}: {error}") from None
    return found

"""Checks input against a pydantic model, and says in one sentence what is wrong with it."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.quoting import plain, shown

Model = TypeVar("Model", bound=BaseModel)


class Reworded(ValueError):
    """A refusal of ours inside pydantic, which only understands ValueError; the field's name is pydantic's to add."""

    def __init__(self, refusal: InvalidRequest) -> None:
        super().__init__(refusal.message.partition(": ")[2])
        self.hint = refusal.hint


def validated(model: type[Model], data: Any) -> Model:
    """Return `data` as a `model`.

    Raises:
        InvalidRequest: naming the first field that is wrong, and its limit.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        cause = error.errors(include_url=False)[0].get("ctx", {}).get("error")
        hint = cause.hint if isinstance(cause, Reworded) else None
        raise InvalidRequest(first_fault(model, error), hint=hint) from None


def first_fault(model: type[BaseModel], error: ValidationError) -> str:
    """Return the first fault of `error` as `field: what is wrong`."""
    fault = error.errors(include_url=False)[0]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{plain(part)}" for part in fault["loc"]).lstrip(".")
    if fault["type"] == "extra_forbidden":
        name = str(fault["loc"][-1])
        close = get_close_matches(name, model.model_fields, n=1)
        return f"{place}: unknown field; " + (f"did you mean {close[0]}?" if close else _known(model))
    if fault["type"] == "value_error":
        message = fault["msg"].removeprefix("Value error, ")
    else:
        message = fault["msg"][:1].lower() + fault["msg"][1:]
    if fault["type"] not in {"missing", "value_error"}:
        message += f", got {shown(fault['input'])}"
    return f"{place}: {message}" if place else message


def _known(model: type[BaseModel]) -> str:
    return "known fields: " + ", ".join(model.model_fields)

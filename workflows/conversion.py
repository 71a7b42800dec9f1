"""How values become payloads: as Temporal's pydantic converter does it, but with one cache of type adapters for all.

The SDK makes a payload converter for every workflow it runs. With a cache in each, a third of a short task's time went
into building the same adapters again.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from pydantic import TypeAdapter
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import PydanticPayloadConverter, pydantic_data_converter
from temporalio.converter import BinaryNullPayloadConverter, CompositePayloadConverter, DataConverter


class CheckedNullConverter(BinaryNullPayloadConverter):
    """Takes nothing for a value only where None may stand; else each handler would have to look out for it."""

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:
        """Return None.

        Raises:
            ValueError: a value of `type_hint` cannot be None.
        """
        value = super().from_payload(payload, type_hint)
        return value if type_hint is None else TypeAdapter(type_hint).validate_python(value)


_CONVERTERS: Final = tuple(
    CheckedNullConverter() if isinstance(converter, BinaryNullPayloadConverter) else converter
    for converter in PydanticPayloadConverter().converters.values()
)


class SharedPayloadConverter(CompositePayloadConverter):
    """Any number of these share their converters, and so what those have learnt."""

    def __init__(self) -> None:
        super().__init__(*_CONVERTERS)


DATA_CONVERTER: Final[DataConverter] = dataclasses.replace(
    pydantic_data_converter, payload_converter_class=SharedPayloadConverter
)
"""For every client of toolcrib. Its payloads are those of `temporalio.contrib.pydantic`."""

"""How values become payloads: as Temporal's pydantic converter does it, but with one cache of type adapters for all.

The SDK makes a payload converter for every workflow it runs. With a cache in each, a third of a short task's time went
into building the same adapters again.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from temporalio.contrib.pydantic import PydanticPayloadConverter, pydantic_data_converter
from temporalio.converter import CompositePayloadConverter, DataConverter

_CONVERTERS: Final = tuple(PydanticPayloadConverter().converters.values())


class SharedPayloadConverter(CompositePayloadConverter):
    """Any number of these share their converters, and so what those have learnt."""

    def __init__(self) -> None:
        super().__init__(*_CONVERTERS)


DATA_CONVERTER: Final[DataConverter] = dataclasses.replace(
    pydantic_data_converter, payload_converter_class=SharedPayloadConverter
)
"""For every client of toolcrib. Its payloads are those of `temporalio.contrib.pydantic`."""

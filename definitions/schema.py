"""The JSON Schema of a WorkflowDefinition, by which editors complete and check one."""

from __future__ import annotations

from typing import Any, Final

from toolcrib.definitions.loader import EXTENSION
from toolcrib.definitions.model import WorkflowDefinition

_NULL: Final = {"type": "null"}


def definition_schema() -> dict[str, Any]:
    """Return the schema: what is left out is left out, and never null, as in the files that people write."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_without_nulls(WorkflowDefinition.model_json_schema()),
        "title": "toolcrib workflow definition",
    }
    schema["patternProperties"] = {f"^{EXTENSION}": {"description": "Your own, such as a place for anchors."}}
    return schema


def _without_nulls(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_nulls(entry) for entry in schema if entry != _NULL]
    if not isinstance(schema, dict):
        return schema
    cleaned = {key: _without_nulls(value) for key, value in schema.items() if not _is_noise(key, value)}
    alternatives = cleaned.get("anyOf", ())
    return {**alternatives[0], **_without(cleaned, "anyOf")} if len(alternatives) == 1 else cleaned


def _is_noise(key: str, value: Any) -> bool:
    return (key == "default" and value in (None, {}, [])) or (key == "title" and isinstance(value, str))


def _without(mapping: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name != key}

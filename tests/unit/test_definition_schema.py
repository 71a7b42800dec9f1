"""The JSON Schema of workflow definitions, by which editors complete them."""

from __future__ import annotations

import json

from toolcrib.definitions.model import Step
from toolcrib.definitions.schema import definition_schema
from write_schema import SCHEMA


def test_the_published_schema_is_that_of_the_model() -> None:
    """It was written anew after the last change of the model: `make schema`."""
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == definition_schema()


def test_it_describes_every_key_and_knows_no_other() -> None:
    """An editor shows what each key means, and marks one that is not known."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    step = schema["$defs"]["Step"]
    assert set(step["properties"]) == {field.alias or name for name, field in Step.model_fields.items()}
    for part in (schema, *schema["$defs"].values()):
        assert part["additionalProperties"] is False
        assert all(part["properties"][key].get("description") for key in part["properties"])
    assert "null" not in SCHEMA.read_text(encoding="utf-8")

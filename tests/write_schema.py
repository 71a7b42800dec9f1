"""Writes the schema of workflow definitions to docs/ anew, after a change of the model. Run by `make schema`."""

from __future__ import annotations

import json
from pathlib import Path

from toolcrib.definitions.schema import definition_schema

SCHEMA = Path(__file__).parents[1] / "docs" / "definition.schema.json"


def text() -> str:
    """Return what is to be in the file."""
    return json.dumps(definition_schema(), indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(text(), encoding="utf-8")

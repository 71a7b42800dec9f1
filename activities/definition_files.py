"""Opens the files in which workflow definitions are."""

from __future__ import annotations

from pathlib import Path

from toolcrib.definitions.loader import parse_definition
from toolcrib.definitions.model import WorkflowDefinition
from toolcrib.worker.yaml_file import read_limited


def load_definition(file: Path) -> WorkflowDefinition:
    """Return the definition in `file`.

    Raises:
        InvalidRequest: it cannot be read or is wrong; the message says in which line, column and key.
    """
    return parse_definition(read_limited(file), file)

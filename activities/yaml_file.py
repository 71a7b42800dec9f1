"""Opens YAML files, of which no more is read than may be in one."""

from __future__ import annotations

from pathlib import Path

from toolcrib.definitions.yaml_text import MAX_BYTES, parse_yaml
from toolcrib.definitions.yaml_value import YamlValue
from toolcrib.scheduling.errors import InvalidRequest


def read_yaml(file: Path) -> YamlValue:
    """Return what `file` holds: see `parse_yaml`.

    Raises:
        InvalidRequest: it cannot be read, or is no plain YAML; the message says where and why.
    """
    return parse_yaml(read_limited(file), file)


def read_limited(file: Path) -> bytes:
    """Return what is in `file`, or its beginning: enough of one that is too large to have it refused.

    Raises:
        InvalidRequest: it cannot be read.
    """
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidRequest(f"{file}: cannot be read: {error.strerror}", hint="Check the path.") from None

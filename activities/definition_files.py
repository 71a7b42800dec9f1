"""The files in which a host's workflow definitions are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from toolcrib.activities.yaml_file import read_limited
from toolcrib.definitions.loader import parse_definition
from toolcrib.definitions.model import WorkflowDefinition
from toolcrib.scheduling.errors import InvalidRequest, UnknownDefinition
from toolcrib.scheduling.quoting import shown

SUFFIXES: Final = (".yaml", ".yml")

_Part = tuple[int, int, str]


def load_definition(file: Path) -> WorkflowDefinition:
    """Return the definition in `file`.

    Raises:
        InvalidRequest: it cannot be read or is wrong; the message says in which line, column and key.
    """
    return parse_definition(read_limited(file), file)


class Catalog:
    """The definitions of a host, by name and version."""

    def __init__(self, definitions: Iterable[WorkflowDefinition]) -> None:
        self._by_reference: Mapping[str, WorkflowDefinition] = {
            definition.reference: definition for definition in sorted(definitions, key=_place)
        }

    @property
    def references(self) -> tuple[str, ...]:
        """What there is, each as `name@version`; of one name the newest version comes last."""
        return tuple(self._by_reference)

    def find(self, reference: str) -> WorkflowDefinition:
        """Return the definition `name@version`, or that of `name` with the highest version.

        Raises:
            UnknownDefinition: there is none.
        """
        if reference in self._by_reference:
            return self._by_reference[reference]
        versions = [found for found in self._by_reference.values() if found.name == reference]
        if not versions:
            raise UnknownDefinition(
                f"there is no definition {shown(reference)}; there are: {', '.join(self.references)}",
                hint="Name one of those, or put its file into the host's folder of definitions and restart the worker.",
            )
        return versions[-1]


def load_catalog(folder: Path) -> Catalog:
    """Return the definitions in the files of a folder whose names end with .yaml or .yml, but not in its subfolders.

    Raises:
        InvalidRequest: the folder has none or cannot be read, or one is wrong; the message names the file, and where.
    """
    found: dict[str, Path] = {}
    definitions = []
    for file in _files(folder):
        definition = load_definition(file)
        if definition.reference in found:
            raise InvalidRequest(
                f"{file}: definition {definition.reference} is in {found[definition.reference]} already",
                hint="Give one of the two another version.",
            )
        found[definition.reference] = file
        definitions.append(definition)
    if not definitions:
        raise InvalidRequest(
            f"{folder}: has no workflow definition", hint="Put one there, as NAME.yaml: see docs/definitions.md"
        )
    return Catalog(definitions)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES and file.is_file())
    except OSError as error:
        raise InvalidRequest(f"{folder}: cannot be read: {error.strerror}", hint="Check the path.") from None


def _place(definition: WorkflowDefinition) -> tuple[str, list[_Part], bool, list[_Part]]:
    """Return where a definition stands among others: by name, then by version; `2-beta` comes before `2`."""
    main, dash, rest = definition.version.partition("-")
    return definition.name, _parts(main), not dash, _parts(rest)


def _parts(version: str) -> list[_Part]:
    """Return numbers as numbers, so that `1.10` comes after `1.9`."""
    found = re.findall(r"[0-9]+|[^0-9]+", version)
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in found]

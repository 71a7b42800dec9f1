"""The folder of a host's workflow definitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolcrib.activities.definition_files import load_catalog
from toolcrib.scheduling.errors import InvalidRequest, UnknownDefinition


def put(folder: Path, file: str, name: str = "smoke", version: str = "1") -> Path:
    """Put a definition into a file of the folder."""
    path = folder / file
    path.write_text(f"name: {name}\nversion: {version}\nsteps: [{{id: s, run: echo}}]\n", encoding="utf-8")
    return path


def test_definitions_are_found_by_name_and_version(tmp_path: Path) -> None:
    """A version pins one; without it the highest is meant, and 1.10 is higher than 1.9."""
    for version in ("1.10", "1.9", "2-beta", "2"):
        put(tmp_path, f"smoke-{version}.yaml", version=version)
    put(tmp_path, "other.yml", "other", "v1")
    (tmp_path / "notes.txt").write_text("not a definition")
    (tmp_path / "drafts.yaml").mkdir()
    catalog = load_catalog(tmp_path)
    assert catalog.references == ("other@v1", "smoke@1.9", "smoke@1.10", "smoke@2-beta", "smoke@2")
    assert catalog.find("smoke@1.9").version == "1.9"
    assert catalog.find("other").reference == "other@v1"
    assert load_catalog(tmp_path).find("smoke").version == "2"
    for reference in ("smoke@3", "smok", "smoke@", ""):
        with pytest.raises(UnknownDefinition, match="there are: other@v1, smoke@"):
            catalog.find(reference)


def test_what_is_wrong_in_the_folder_is_named(tmp_path: Path) -> None:
    """A broken file by line and column, one definition in two files by both, a folder without any by itself."""
    with pytest.raises(InvalidRequest, match=f"{tmp_path}: has no workflow definition"):
        load_catalog(tmp_path)
    with pytest.raises(InvalidRequest, match="nowhere: cannot be read: No such file or directory"):
        load_catalog(tmp_path / "nowhere")
    first, second = put(tmp_path, "a.yaml"), put(tmp_path, "b.yaml")
    with pytest.raises(InvalidRequest, match=f"{second}: definition smoke@1 is in {first} already"):
        load_catalog(tmp_path)
    second.write_text("name: smoke\nsteps: []\n", encoding="utf-8")
    with pytest.raises(InvalidRequest, match=f"{second}:2:8: steps: has no entries"):
        load_catalog(tmp_path)

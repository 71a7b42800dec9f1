"""The public faces: what clients call, and what runners, drivers and strategies are written against."""

from __future__ import annotations

from types import ModuleType

import pytest

from toolcrib import client, worker

ALIASES = {"Rank"}
"""Names of types that have none of their own."""


@pytest.mark.parametrize("package", [client, worker], ids=["client", "worker"])
def test_every_public_name_is_there(package: ModuleType) -> None:
    """What `toolcrib.client` and `toolcrib.worker` list can be imported from them, and is listed in order."""
    for name in package.__all__:
        assert name in ALIASES or getattr(package, name).__name__ == name
    assert package.__all__ == sorted(package.__all__)
    assert sorted(package._MODULES) == package.__all__
    assert dir(package) == package.__all__

"""The public face of the client."""

from __future__ import annotations

from toolcrib import client


def test_every_public_name_is_there() -> None:
    """What `toolcrib.client` lists can be imported from it, and is listed in order."""
    assert [name for name in client.__all__ if getattr(client, name).__name__ != name] == []
    assert client.__all__ == sorted(client.__all__)
    assert sorted(client._MODULES) == client.__all__

"""`toolcrib up` refuses what cannot work before it starts anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolcrib.client import InvalidRequest, ToolcribError, UnknownStrategy
from toolcrib.worker.up import Ready, UpOptions, run_up


def never(_: Ready) -> None:
    """Must not be called: nothing can be ready."""
    raise AssertionError("ready")


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"pool_options": {"strategy": "bogus"}}, UnknownStrategy, "'bogus'"),
        ({"pool_options": {"max_concurrent": 0}}, InvalidRequest, "max_concurrent"),
        ({"pool_options": {"lease_ttl": 1.0}}, InvalidRequest, "lease_ttl"),
        ({"pool_options": {"colour": "red"}}, InvalidRequest, "colour"),
        ({"pool": "a b"}, InvalidRequest, "pool"),
        ({"pool": ""}, InvalidRequest, "pool"),
        ({"host_id": "a/b"}, InvalidRequest, "host_id"),
        ({"tags": ("",)}, InvalidRequest, "tag"),
    ],
)
async def test_a_wrong_option_is_named(options: dict[str, Any], error: type[ToolcribError], named: str) -> None:
    """The message names the option; a strategy that nobody registered is a configuration error."""
    with pytest.raises(error, match=named):
        await run_up(UpOptions(port=0, ui_port=0, **options), never)


async def test_a_data_folder_that_cannot_be_one_is_named(tmp_path: Path) -> None:
    """Where a file is in the way, the error says so."""
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InvalidRequest, match=r"data: .*file.* cannot be a folder"):
        await run_up(UpOptions(port=0, ui_port=0, data=file), never)


def test_the_ready_line_has_no_host_if_there_is_none() -> None:
    """What scripts read is one line of `name=value`, with `-` for a host that is not there."""
    ready = Ready(address="127.0.0.1:7233", ui="http://127.0.0.1:8233", pool="default", host=None)
    assert str(ready) == "ready address=127.0.0.1:7233 ui=http://127.0.0.1:8233 pool=default host=-"

"""The demo, run as a person runs it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from support.browser import CHROMIUM, NO_CHROMIUM
from support.processes import PROGRAM
from toolcrib.client.demo.browser import missing


def test_what_a_demo_in_browsers_lacks_is_said_with_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one line; the rest of the demo needs none of it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing() == "there is no Chromium on this machine; on Debian: apt-get install chromium"
    monkeypatch.setitem(sys.modules, "playwright", None)
    assert missing() == "Playwright is not installed: pip install playwright"


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
async def test_the_demo_ends_well() -> None:
    """All of its tasks, and two tests in browsers, end as they should, and it says so."""
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, "demo", stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    said = (await process.communicate())[0].decode()
    assert process.returncode == 0, said
    assert "Every task ended as it should: 11 done, 1 failed on purpose" in said
    assert said.count("are on their way. (picture: ") == 2

"""What commands write: to terminals without what would command them, elsewhere as it is."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest

from toolcrib.client.cli.output import note, say

WRITTEN = "caf\u00e9 \U0001f469\u200d\U0001f52c\tone\r\ntwo\x1b]0;owned\x07\x9b2J\rthree\x7f"


class _Stream(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        """Say whether it is to be taken for a terminal."""
        return self._terminal


@pytest.mark.parametrize(("write", "name"), [(say, "stdout"), (note, "stderr")])
def test_what_a_task_wrote_cannot_command_a_terminal(
    monkeypatch: pytest.MonkeyPatch, write: Callable[[str], None], name: str
) -> None:
    """Control characters are escapes there, but for line breaks and tabs; programs get them as they are."""
    for terminal, shown in (
        (True, "caf\u00e9 \U0001f469\u200d\U0001f52c\tone\ntwo\\x1b]0;owned\\x07\\x9b2J\\rthree\\x7f\n"),
        (False, f"{WRITTEN}\n"),
    ):
        stream = _Stream(terminal=terminal)
        monkeypatch.setattr(sys, name, stream)
        write(WRITTEN)
        assert stream.getvalue() == shown

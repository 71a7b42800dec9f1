"""What the suite knows of its lease: the slot's name, and how to say how far it is."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def slot() -> str:
    """The slot that the suite runs on."""
    return os.environ["TOOLCRIB_DEVICE_ID"]


class Progress:
    """Prints a line for toolcrib after each test."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._done = 0

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Say how far the suite is."""
        self._done += 1
        terminal = self._session.config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            terminal.ensure_newline()
            name = nodeid.rpartition("::")[2]
            terminal.write_line(f"::toolcrib progress {self._done / self._session.testscollected} {name}")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Have the progress told."""
    session.config.pluginmanager.register(Progress(session))

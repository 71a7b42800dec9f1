"""Runs the command line inside the test's process, with a client of prepared answers."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import structlog

from support.fake_crib import FakeCrib
from toolcrib.client.cli import session
from toolcrib.client.cli.app import run as run_command_line


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]
Connections = list[tuple[str | None, str | None, str | None]]
"""Address, namespace and pool of each connection that was asked for."""


@pytest.fixture
def crib() -> FakeCrib:
    """What commands are connected to."""
    return FakeCrib()


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch, crib: FakeCrib) -> Connections:
    """Let commands connect to `crib`, and return how they did."""
    made: Connections = []

    async def connect(address: str | None, namespace: str | None, pool: str | None) -> FakeCrib:
        made.append((address, namespace, pool))
        return crib

    monkeypatch.setattr(session, "connect", connect)
    return made


@pytest.fixture
def ctrl_c_heard() -> Iterator[None]:
    """Let SIGINT do what it does in a terminal; who runs the tests in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    connections: Connections,
    ctrl_c_heard: None,
) -> Iterator[Callable[..., Ran]]:
    """Run `toolcrib` with these words, and this on standard input."""

    def run(*words: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run_command_line(words)
        written = capfd.readouterr()
        return Ran(code, written.out, written.err)

    yield run
    structlog.reset_defaults()

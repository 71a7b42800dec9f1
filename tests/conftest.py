"""What every test has: a clean environment, and a real Temporal server with a namespace of its own."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable, Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from temporalio.client import Client

from support.histories import dumped, histories_of
from support.lab import Lab
from support.servers import connect, fresh_namespace
from toolcrib.client import Toolcrib
from toolcrib.worker.embedded import EmbeddedServer
from toolcrib.worker.scheduler_role import scheduler_role

KEPT = os.environ.get("TOOLCRIB_REPLAY")
"""The folder in which the histories of every test are kept, to be replayed; None: they are not."""

# The short profile tries the same examples every time: one run tells as much as the next. The long one explores.
settings.register_profile(
    "default", deadline=None, max_examples=50, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "long",
    settings.get_profile("default"),
    max_examples=1_000,
    stateful_step_count=200,
    derandomize=False,
    print_blob=True,
)
settings.load_profile("default")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a test that is skipped, for want of a tool or whatever else, has failed."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: nothing may be skipped in CI: {report.longrepr}"
    return report


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the settings of whoever runs the tests out of them, and the tests' files out of that person's home."""
    for name in list(os.environ):
        if name.startswith(("TEMPORAL_", "TOOLCRIB_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TOOLCRIB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TOOLCRIB_LOCKS", str(tmp_path / "locks"))
    # Here the temporal CLI keeps its profiles, and the SDK looks for them.
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture(scope="session")
async def server() -> AsyncIterator[EmbeddedServer]:
    """A server in memory, shared by all tests of this process."""
    async with EmbeddedServer(port=0, headless=True) as server:
        yield server


@pytest.fixture
async def namespace(server: EmbeddedServer) -> str:
    """A namespace of this test's own."""
    return await fresh_namespace(server.address)


@pytest.fixture
async def client(server: EmbeddedServer, namespace: str) -> Client:
    """A client of this test's own namespace."""
    return await connect(server.address, namespace)


@pytest.fixture
async def lab(client: Client, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Lab]:
    """A running scheduler in this test's namespace; hosts and pools are added by the test.

    With TOOLCRIB_REPLAY set, what its workflows did is kept there, unless the test is marked with `no_replay`.
    """
    async with scheduler_role(client):
        yield Lab(client, Toolcrib(client), tmp_path / "hosts")
    if KEPT is not None and request.node.get_closest_marker("no_replay") is None:
        test = re.sub(r"[^A-Za-z0-9_-]+", "-", request.node.nodeid)[-150:]
        for number, history in enumerate(await histories_of(client)):
            (Path(KEPT) / f"{test}-{number}.json").write_text(dumped(history), encoding="utf-8")


@pytest.fixture
def server_with_file(tmp_path: Path) -> Callable[..., EmbeddedServer]:
    """Makes servers that keep everything in one file: the next one goes on where the last one stopped, or was killed.

    Use one at a time, with `async with server_with_file(port=...)`; without a port it takes any free one.
    """

    def new(port: int = 0) -> EmbeddedServer:
        return EmbeddedServer(
            port=port, headless=True, database=tmp_path / "temporal.db", log=tmp_path / "temporal.log"
        )

    return new

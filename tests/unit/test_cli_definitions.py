"""`toolcrib definition list` and `show`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from support.fake_crib import CREATED, FakeCrib, pool_view

if TYPE_CHECKING:
    from support.cli import Run

pytest_plugins = ["support.cli"]


def host(host_id: str, *workflows: str, says: bool = True) -> dict[str, Any]:
    """Return a host that says which workflows it runs, or does not."""
    given = {"id": host_id, "state": "online", "in_service": True, "incarnation": 1, "last_seen": CREATED}
    return {**given, "workflows": list(workflows) if says else None}


@pytest.fixture
def crib() -> FakeCrib:
    """A pool with three hosts, one of which does not say what it runs."""
    fake = FakeCrib()
    hosts = [host("a", "smoke@1.9", "smoke@1.10"), host("b", "smoke@1.10", "Flash"), host("c", says=False)]
    fake.pool().view = pool_view(hosts=hosts)
    return fake


def test_what_hosts_have_is_listed(cli: Run) -> None:
    """One line for each version, with its hosts; who does not say is noted, and JSON is an array."""
    found = cli("definition", "list")
    assert [line.split() for line in found.out.splitlines()] == [
        ["WORKFLOW", "VERSION", "HOSTS"],
        ["Flash", "-", "b"],
        ["smoke", "1.9", "a"],
        ["smoke", "1.10", "a", "b"],
    ]
    assert found.err == "note: c: may run others as well, and does not say which\n"
    assert json.loads(cli("definition", "list", "-o", "json").out)[0] == {
        "reference": "Flash",
        "name": "Flash",
        "version": None,
        "hosts": ["b"],
    }


@pytest.mark.parametrize(("wanted", "versions"), [("smoke", ["1.9", "1.10"]), ("smoke@1.10", ["1.10"])])
def test_a_name_shows_all_its_versions(cli: Run, wanted: str, versions: list[str]) -> None:
    """And with a version that one alone."""
    assert [one["version"] for one in json.loads(cli("definition", "show", wanted, "-o", "json").out)] == versions
    assert [line for line in cli("definition", "show", wanted).out.splitlines() if line.startswith("version")] == [
        f"version   {version}" for version in versions
    ]


def test_what_no_host_has_is_refused(cli: Run) -> None:
    """With exit code 4, and what may be meant."""
    found = cli("definition", "show", "smok")
    assert found.code == 4
    assert "no host of pool 'default' has the workflow 'smok'" in found.err
    assert "Did you mean smoke@1.9, smoke@1.10?" in found.err

"""Which server is meant, and who said so."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolcrib.scheduling.errors import NoConnection
from toolcrib.worker.target import checked_address, find_target


@pytest.mark.parametrize("address", ["127.0.0.1:7233", "temporal.example:1", "[::1]:65535", "my-host_1.internal:7233"])
def test_host_and_port_are_taken(address: str) -> None:
    """An address is a host and a port."""
    assert checked_address(address, "as given") == address


@pytest.mark.parametrize(
    ("address", "fault", "hint"),
    [
        ("127.0.0.1", "no port", "127.0.0.1:7233"),
        ("::1", "no port", "[::1]:7233"),
        ("", "no port", "HOST:7233"),
        ("localhost:", "not a number from 1 to 65535", "localhost:PORT"),
        ("localhost:http", "not a number", "localhost:PORT"),
        ("localhost:0", "not a number", "7233"),
        ("localhost:65536", "not a number", "7233"),
        ("localhost:" + "9" * 5000, "not a number", "7233"),
        ("localhost:٧٢٣٣", "not a number", "7233"),
        ("http://localhost:7233", "begins with a scheme", "Write localhost:7233"),
        ("grpcs://temporal.example/", "begins with a scheme", "Write temporal.example:7233"),
        (":7233", "no valid host", "HOST:PORT"),
        ("my host:7233", "no valid host", "HOST:PORT"),
        ("a/b:7233", "no valid host", "HOST:PORT"),
    ],
)
def test_a_malformed_address_is_refused_before_anything_is_tried(address: str, fault: str, hint: str) -> None:
    """A malformed address is refused with the fault, who named it, and how to write it."""
    with pytest.raises(NoConnection, match=fault) as caught:
        checked_address(address, "from the variable TEMPORAL_ADDRESS")
    assert "(from the variable TEMPORAL_ADDRESS)" in caught.value.message
    assert hint in (caught.value.hint or "")


def test_without_any_word_it_is_this_machine() -> None:
    """The default is the embedded server's address and the default namespace, without TLS."""
    target = find_target()
    assert str(target) == "127.0.0.1:7233 (address by default; TLS off, by default)"
    assert target.namespace == "default"


def test_what_is_given_wins_over_variable_and_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The argument wins over the variable, the variable over the profile file; each is named as the source."""
    file = tmp_path / "profiles.toml"
    file.write_text('[profile.default]\naddress = "filed:1"\nnamespace = "filed"\n')
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(file))
    filed = find_target()
    assert (filed.address, filed.source, filed.namespace) == ("filed:1", f"from {file}", "filed")
    monkeypatch.setenv("TEMPORAL_ADDRESS", "variable:2")
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "variable")
    variable = find_target()
    assert (variable.address, variable.source) == ("variable:2", "from the variable TEMPORAL_ADDRESS")
    assert variable.namespace == "variable"
    given = find_target("given:3", "given")
    assert (given.address, given.source, given.namespace) == ("given:3", "as given", "given")


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty TEMPORAL_ADDRESS or TEMPORAL_NAMESPACE is no address and no namespace."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", "")
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "")
    target = find_target()
    assert (target.source, target.namespace) == ("by default", "default")


def test_an_address_given_as_nothing_is_refused() -> None:
    """An empty argument, as of an unset shell variable, does not silently become the default."""
    with pytest.raises(NoConnection, match="has no port"):
        find_target("")


def test_tls_is_on_with_an_api_key_and_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """An API key turns TLS on; a TLS variable says otherwise and is named."""
    monkeypatch.setenv("TEMPORAL_API_KEY", "secret")
    assert "TLS on, because an API key is set" in str(find_target())
    monkeypatch.setenv("TEMPORAL_TLS", "false")
    assert "TLS off, by a TEMPORAL_TLS variable" in str(find_target())
    assert "secret" not in str(find_target())


def test_a_certificate_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A TLS file that is missing is named, with what to correct."""
    monkeypatch.setenv("TEMPORAL_TLS_SERVER_CA_CERT_PATH", str(tmp_path / "gone.pem"))
    with pytest.raises(NoConnection, match=r"cannot read the TLS file .*gone\.pem: No such file"):
        find_target()


def test_a_broken_or_incomplete_profile_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A profile file that cannot be parsed, and a profile that it lacks, are named in one line."""
    file = tmp_path / "broken.toml"
    file.write_text("[profile.default\n")
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(file))
    with pytest.raises(NoConnection, match=r"broken\.toml cannot be used: .*TOML") as caught:
        find_target()
    assert "\n" not in caught.value.message
    file.write_text('[profile.default]\naddress = "filed:1"\n')
    monkeypatch.setenv("TEMPORAL_PROFILE", "lab")
    with pytest.raises(NoConnection, match=r"profile lab of .*broken\.toml"):
        find_target()

"""The keys of hosts, as files."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from toolcrib.activities.host_keys import create_key, load_key, load_or_create_key
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.signatures import checked_public_key

OTHER_KIND = X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def test_a_key_is_created_once_and_found_again(tmp_path: Path) -> None:
    """It is the host's alone, and readable by nobody else."""
    created = create_key(tmp_path, "lab-1")
    file = tmp_path / "keys/lab-1.pem"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert checked_public_key(created.public) == created.public
    assert load_key(tmp_path, "lab-1").public == created.public
    assert load_or_create_key(tmp_path, "lab-1").public == created.public
    assert load_or_create_key(tmp_path, "lab-2").public != created.public


def test_a_key_is_never_replaced(tmp_path: Path) -> None:
    """Who asks for another is told the one that there is."""
    public = create_key(tmp_path, "lab-1").public
    with pytest.raises(InvalidRequest, match="has a key already") as caught:
        create_key(tmp_path, "lab-1")
    assert public in caught.value.message
    assert load_key(tmp_path, "lab-1").public == public


def test_a_missing_key_says_how_to_create_it(tmp_path: Path) -> None:
    """With the very command."""
    with pytest.raises(InvalidRequest, match="has no key") as caught:
        load_key(tmp_path, "lab-1")
    assert caught.value.hint == "Create it: toolcrib host keygen lab-1"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    """Whoever can read it can be the host."""
    create_key(tmp_path, "lab-1")
    file = tmp_path / "keys/lab-1.pem"
    file.chmod(mode)
    with pytest.raises(InvalidRequest, match="can be read by others") as caught:
        load_key(tmp_path, "lab-1")
    assert caught.value.hint == f"Keep them out: chmod 600 {file}"


@pytest.mark.parametrize(
    "content", [b"", b"not a key", OTHER_KIND, OTHER_KIND[:40]], ids=["empty", "text", "another kind", "torn"]
)
def test_what_is_no_ed25519_key_is_refused(tmp_path: Path, content: bytes) -> None:
    """Empty, torn, or of another kind."""
    create_key(tmp_path, "lab-1")
    (tmp_path / "keys/lab-1.pem").write_bytes(content)
    with pytest.raises(InvalidRequest, match="is not an Ed25519 key in PEM"):
        load_key(tmp_path, "lab-1")


@pytest.mark.parametrize("host_id", ["", "../evil", "a/b", "x" * 65])
def test_a_malformed_id_names_no_file(tmp_path: Path, host_id: str) -> None:
    """No key is written outside its folder."""
    with pytest.raises(InvalidRequest, match="host_id"):
        create_key(tmp_path, host_id)


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    """In two lines."""
    (tmp_path / "file").touch()
    with pytest.raises(InvalidRequest, match="cannot be written") as caught:
        create_key(tmp_path / "file", "lab-1")
    assert caught.value.hint

"""Files that are no host file at all, or not even YAML."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.worker.host_file import load_host_file

DEEP = "nested deeper than 32 levels"


def refusal(folder: Path, content: bytes) -> str:
    """Return what is said of a file with that content, without its path."""
    file = folder / "host.yaml"
    file.write_bytes(content)
    with pytest.raises(InvalidRequest) as refused:
        load_host_file(file)
    assert "\n" not in refused.value.message
    return refused.value.message.removeprefix(f"{file}:").strip()


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"# only a comment\n", b"---\n...\n", b"---\n# nothing\n", b"\xef\xbb\xbf"]
)
def test_an_empty_file_is_called_empty(tmp_path: Path, content: bytes) -> None:
    """Nothing in it, in all its forms, is one fault with one name."""
    assert refusal(tmp_path, content) == "1:1: the file is empty"


@pytest.mark.parametrize("content", [b"[]\n", b"false\n", b"0\n", b"''\n", b"hello\n", b"null\n"])
def test_other_things_than_a_mapping_are_refused(tmp_path: Path, content: bytes) -> None:
    """A list or a single value is not taken for an empty host file."""
    assert refusal(tmp_path, content) == "1:1: must be a mapping"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b"host: {id: a}\n---\nhost: {id: b}\n",
            "2:1: expected a single document in the stream, but found another document",
        ),
        (b"host: {{ id }} and more\n", "1:16: while parsing a block mapping, did not find expected key"),
        (b"host: @home\n", "1:7: found character '@' that cannot start any token"),
        (b"host:\n\tid: a\n", "2:1: a tab stands where spaces have to"),
        (b"host: *nowhere\n", "1:7: found undefined alias"),
        (b"host: 'open\n", "1:7: while scanning a quoted scalar, found unexpected end of stream"),
        (b"host: {id: a\x01b}\n", "1:13: the character #x0001 cannot stand in YAML"),
        (b"host: caf\xe9\n", "1:10: the file is not text in UTF-8: byte 9 is no part of any"),
        (bytes(range(256)), "3:115: the file is not text in UTF-8: byte 128 is no part of any"),
        (b"host: &self [*self]\n", "1:7: host[0]: contains itself"),
        (b"host: {id: a}\nhost: {id: b}\n", "2:1: host: given twice; the first one is on line 1"),
        (b"[\n" * 3000 + b"]" * 3000, f"33:1: {DEEP}"),
        (b'{"a":' * 3000 + b"1" + b"}" * 3000, f"1:161: {DEEP}"),
        ("\n".join("  " * level + "a:" for level in range(250)).encode(), f"33:65: {DEEP}"),
    ],
)
def test_what_is_not_plain_yaml_is_pointed_at(tmp_path: Path, content: bytes, said: str) -> None:
    """Syntax, encoding, depth, repeated keys and endless aliases are ordinary faults, never a traceback."""
    assert refusal(tmp_path, content).removesuffix(":") == said


def test_syntax_faults_advise_quotes(tmp_path: Path) -> None:
    """Most of them are values that needed quotes."""
    file = tmp_path / "host.yaml"
    file.write_text("host: %ls")
    with pytest.raises(InvalidRequest) as refused:
        load_host_file(file)
    assert refused.value.hint == "Put a value that begins with, or has, special characters in quotes."


def test_a_large_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    """What is too large is not even read to its end."""
    begin = time.process_time()
    assert refusal(tmp_path, b"- x\n" * 2_000_000) == "65537:1: the file is larger than 256 KiB, which is the limit"
    assert time.process_time() - begin < 1


def test_many_aliases_cost_no_time(tmp_path: Path) -> None:
    """Aliases of aliases, which would unfold to a billion nodes, are each looked at once."""
    lists = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))
    begin = time.process_time()
    assert refusal(tmp_path, f"a0: &a0 [x]\n{lists}\n".encode()) == "1:1: a0: unknown key; known: host"
    assert time.process_time() - begin < 2


def test_a_long_chain_of_merges_is_followed(tmp_path: Path) -> None:
    """Mappings that each take over the one before are put together without running out of stack."""
    chain = "\n".join(f"  a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 3000))
    assert refusal(tmp_path, f"host:\n  a0: &a0 {{x: y}}\n{chain}\n".encode()).startswith("2:3: host.a0: unknown key")


@pytest.mark.parametrize(("name", "why"), [("absent.yaml", "No such file or directory"), (".", "Is a directory")])
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, why: str) -> None:
    """A path that leads nowhere, or to a folder, is shown with the reason."""
    with pytest.raises(InvalidRequest) as refused:
        load_host_file(tmp_path / name)
    assert refused.value.message == f"{tmp_path / name}: cannot be read: {why}"

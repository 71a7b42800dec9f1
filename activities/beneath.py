"""Files below a folder that others may write to: no link in it and no `..` leads out of it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

DEEPEST: Final = 100
"""Folders in each other that are looked into: each takes an open file."""
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_OTHER_KIND: Final = (errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG)
"""What opening says of links, of files where there should be a folder, of sockets, and of what cannot be there."""


@contextmanager
def folder_beneath(base: Path, parts: Sequence[str]) -> Iterator[int]:
    """Open a folder below `base` by the names on the way to it.

    Raises:
        FileNotFoundError: it is not there, or something on the way is a link.
        OSError: it cannot be opened.
    """
    folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            inner = _opened(part, _FOLDER, folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


@contextmanager
def file_beneath(base: Path, parts: Sequence[str]) -> Iterator[int]:
    """Open a file below `base`, to read it.

    Raises:
        FileNotFoundError: it is not there, is no regular file, or something on the way is a link.
        OSError: it cannot be opened.
    """
    with folder_beneath(base, parts[:-1]) as folder:
        file = _opened(parts[-1], _FILE, folder)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise FileNotFoundError(errno.ENOENT, "not a regular file", "/".join(parts))
        yield file
    finally:
        os.close(file)


def files_in(folder: int, before: str = "", depth: int = 0) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the regular files of an open folder and those below it, by their paths in the order of these."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name + "/" * entry.is_dir(follow_symlinks=False))
    for entry in entries:
        with suppress(OSError):  # it may be gone, or not ours to look at
            if entry.is_file(follow_symlinks=False):
                yield before + entry.name, entry.stat(follow_symlinks=False)
            elif entry.is_dir(follow_symlinks=False) and depth < DEEPEST:
                yield from _files_below(folder, entry.name, before, depth)


def remove_beneath(folder: int, name: str, depth: int = 0) -> None:
    """Delete an entry of an open folder, with all that is in it. Links are deleted, never followed.

    Raises:
        OSError: something cannot be deleted.
    """
    if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=folder)
        return
    inner = _opened(name, _FOLDER, folder)
    try:
        if depth > DEEPEST:
            raise OSError(errno.ELOOP, "too many folders in each other", name)
        os.fchmod(inner, stat.S_IRWXU)  # works leave folders that nobody may write to
        with os.scandir(inner) as found:
            names = [entry.name for entry in found]
        for entry in names:
            remove_beneath(inner, entry, depth + 1)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=folder)


def _files_below(folder: int, name: str, before: str, depth: int) -> Iterator[tuple[str, os.stat_result]]:
    inner = _opened(name, _FOLDER, folder)
    try:
        yield from files_in(inner, f"{before}{name}/", depth + 1)
    finally:
        os.close(inner)


def _opened(name: str, flags: int, folder: int) -> int:
    if name in {"", ".", ".."} or "/" in name or "\0" in name:
        raise FileNotFoundError(errno.ENOENT, "not the name of a file", name)
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in _OTHER_KIND:
            raise FileNotFoundError(errno.ENOENT, "nothing of that kind is there", name) from None
        raise

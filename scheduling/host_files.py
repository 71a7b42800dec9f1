"""What clients ask hosts for: the logs and artifacts of attempts, in pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from toolcrib.scheduling.sizes import KIB

PIECE: Final = 256 * KIB
"""Bytes of a file in one answer: few enough for every limit on the way, base 64 included."""


@dataclass(frozen=True, kw_only=True)
class FileRequest:
    """Asks for a piece of an attempt's log, or of one of its artifacts."""

    task_id: str
    attempt: int
    artifact: str | None = None
    """Its path in the attempt's folder; None: the log."""
    offset: int = 0


@dataclass(frozen=True, kw_only=True)
class ArtifactsRequest:
    """Asks for the artifacts of an attempt, by their paths."""

    task_id: str
    attempt: int
    after: str = ""
    """Only those behind this path, as a list may be too long for one answer."""


class Answer(BaseModel):
    """Base of the answers."""

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64")

    found: bool = True
    """Whether the host has it."""
    open: bool = False
    """Whether the attempt may yet write to it."""


class FilePiece(Answer):
    """A piece of a file, from the offset that was asked for."""

    data: bytes = b""
    """Empty at the end of the file."""
    size: int = 0
    """Bytes of the whole file, so far."""


class Artifact(BaseModel):
    """A file that an attempt has left."""

    model_config = ConfigDict(frozen=True)

    path: str
    """In the attempt's folder of artifacts, with `/`."""
    bytes: int


class ArtifactList(Answer):
    """Some of an attempt's artifacts, by their paths."""

    artifacts: list[Artifact] = Field(default_factory=list)
    more: bool = False
    """Whether there are others behind these."""

"""What a task asks of a device, and whether a device has it.

Everything is compared literally and case-sensitively, after Unicode normalisation to NFC: a tag is not a pattern.
One thing is more than a condition: devices with a tag `work:...` are an application's own, and serve only tasks that
ask for such a tag.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.references import Offered, runs

MAX_TAG_LENGTH: Final = 128
MAX_TAGS: Final = 64
WORK: Final = "work:"
"""With this begins the tag by which an application's slots, and the tasks for it, name a work of its own."""


class Describable(Protocol):
    """What constraints look at in a device."""

    @property
    def device_id(self) -> str:
        """Id on its host."""

    @property
    def host_id(self) -> str:
        """Owning host."""

    @property
    def driver_type(self) -> str:
        """What kind of device it is."""

    @property
    def tags(self) -> tuple[str, ...]:
        """Capabilities."""

    @property
    def workflows(self) -> Offered:
        """The workflow references that are run on it."""


@dataclass(frozen=True, kw_only=True, order=True)
class Constraints:
    """Conditions that all have to hold; an absent one holds for every device."""

    driver_type: str | None = None
    tags: tuple[str, ...] = ()
    device_id: str | None = None
    host_id: str | None = None
    workflow: str | None = None
    """A reference that its host runs on it."""

    def matches(self, device: Describable) -> bool:
        """Return whether `device` meets every condition; it may well have more tags than are asked for."""
        return (
            (self.driver_type is None or self.driver_type == device.driver_type)
            and (self.device_id is None or self.device_id == device.device_id)
            and (self.host_id is None or self.host_id == device.host_id)
            and all(tag in device.tags for tag in self.tags)
            and (self.for_work or not is_reserved(device))
            and (self.workflow is None or runs(device.workflows, self.workflow))
        )

    @property
    def for_work(self) -> bool:
        """Whether it asks for a work of an application."""
        return any(tag.startswith(WORK) for tag in self.tags)

    def __str__(self) -> str:
        named = {"driver type": self.driver_type, "device": self.device_id, "host": self.host_id}
        parts = [f"{name} {value}" for name, value in named.items() if value is not None]
        parts += [f"tag {tag}" for tag in self.tags]
        parts += [] if self.workflow is None else [f"workflow {self.workflow}"]
        return ", ".join(parts) or "any device"


def is_reserved(device: Describable) -> bool:
    """Return whether a device is an application's own, and not for goals and workflows."""
    return any(tag.startswith(WORK) for tag in device.tags)


def checked_tag(tag: str, field: str) -> str:
    """Return `tag` trimmed and in NFC.

    Raises:
        InvalidRequest: it is blank, too long or has characters that cannot be printed.
    """
    clean = unicodedata.normalize("NFC", tag.strip())
    if not clean:
        raise InvalidRequest(f"{field}: a tag is blank")
    if len(clean) > MAX_TAG_LENGTH:
        raise InvalidRequest(f"{field}: a tag has {len(clean)} characters, the limit is {MAX_TAG_LENGTH}")
    if not clean.isprintable():
        raise InvalidRequest(f"{field}: tag {clean!r} has characters that cannot be printed")
    return clean


def checked_tags(tags: Iterable[str], field: str = "tags") -> tuple[str, ...]:
    """Return `tags` checked, without repeats, in a fixed order, so that equal demands are equal values.

    Raises:
        InvalidRequest: a tag is malformed, or there are too many.
    """
    clean = sorted({checked_tag(tag, field): None for tag in tags})
    if len(clean) > MAX_TAGS:
        raise InvalidRequest(f"{field}: {len(clean)} tags, the limit is {MAX_TAGS}")
    return tuple(clean)

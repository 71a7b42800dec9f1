"""The host file: what a host is called, which devices it has and how it runs tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from toolcrib.activities.drivers.finding import DeviceSearch
from toolcrib.activities.progress import THROTTLE
from toolcrib.activities.yaml_file import read_yaml
from toolcrib.definitions.yaml_value import YamlValue
from toolcrib.scheduling.constraints import checked_tag, checked_tags
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.durations import parse_duration
from toolcrib.scheduling.keeping import LOG_LIMIT, Keep
from toolcrib.scheduling.names import DEFAULT_POOL, checked_name
from toolcrib.scheduling.quoting import shown
from toolcrib.scheduling.sizes import parse_size
from toolcrib.worker.runner_names import RunnerNames, read_runners

DEFAULT_DRAIN_TIMEOUT: Final = 600.0
MAX_COUNT: Final = 1_000
"""Devices that one entry may ask for."""

_HOST_KEYS: Final = (
    "id",
    "pool",
    "devices",
    "runners",
    "definitions",
    "drain_timeout",
    "progress_throttle",
    "log_limit",
    "keep",
)
_DEVICE_KEYS: Final = ("id", "driver", "driver_type", "tags", "properties", "count")
_KEEP_KEYS: Final = ("age", "bytes")


@dataclass(frozen=True, kw_only=True)
class HostFile:
    """What a host file says."""

    id: str
    devices: tuple[DeviceSpec, ...]
    searches: tuple[DeviceSearch, ...] = ()
    """What the drivers are asked to find, when the host starts."""
    pool: str = DEFAULT_POOL
    runners: RunnerNames = field(default_factory=RunnerNames)
    definitions: Path | None = None
    """The folder of workflow definitions."""
    drain_timeout: float = DEFAULT_DRAIN_TIMEOUT
    """Seconds that running work gets to finish in when the host stops."""
    progress_throttle: float = THROTTLE
    """Seconds between two reports of one task's progress that are passed on, at least."""
    log_limit: int = LOG_LIMIT
    """Bytes of an attempt's output that its log has, before all but the end of it is left out."""
    keep: Keep = field(default_factory=Keep)
    """For how long, and how much, logs and artifacts are kept."""


def load_host_file(file: Path) -> HostFile:
    """Return what the host file says.

    Raises:
        InvalidRequest: it cannot be read or is wrong; the message says in which line, column and key.
    """
    root = read_yaml(file).mapping(known=("host",), required=("host",))
    host = root["host"].mapping(known=_HOST_KEYS, required=("id", "devices"))
    host_id, (devices, searches) = _name(host["id"]), _devices(host["devices"])
    driver_types = [device.driver_type for device in devices] + [search.driver_type for search in searches]
    return HostFile(
        id=host_id,
        devices=devices,
        searches=searches,
        pool=_name(host["pool"]) if "pool" in host else DEFAULT_POOL,
        runners=read_runners(host["runners"], driver_types) if "runners" in host else RunnerNames(),
        definitions=_folder(host["definitions"]) if "definitions" in host else None,
        drain_timeout=_duration(host["drain_timeout"]) if "drain_timeout" in host else DEFAULT_DRAIN_TIMEOUT,
        progress_throttle=_duration(host["progress_throttle"]) if "progress_throttle" in host else THROTTLE,
        log_limit=_size(host["log_limit"]) if "log_limit" in host else LOG_LIMIT,
        keep=_keep(host["keep"]) if "keep" in host else Keep(),
    )


def _devices(value: YamlValue) -> tuple[tuple[DeviceSpec, ...], tuple[DeviceSearch, ...]]:
    entries = value.entries()
    if not entries:
        raise value.fault("has no entries; a host needs at least one device")
    devices: dict[str, DeviceSpec] = {}
    searches: list[DeviceSearch] = []
    for entry in entries:
        device = _device(entry)
        if isinstance(device, DeviceSearch):
            searches.append(device)
        elif device.id in devices:
            raise entry.fault(f"the host has a device {device.id} already")
        else:
            devices[device.id] = device
    return tuple(devices.values()), tuple(searches)


def _device(value: YamlValue) -> DeviceSpec | DeviceSearch:
    """Return a device, or what is to be found by its driver if there is no id."""
    found = value.mapping(known=_DEVICE_KEYS, required=("driver",))
    if "id" in found and "count" in found:
        raise found["count"].fault("a device that has an id is one; leave out one of the two")
    device_id = _name(found["id"]) if "id" in found else None
    driver = found["driver"].text()
    driver_type = _name(found["driver_type"] if "driver_type" in found else found["driver"])
    tags = _tags(found["tags"]) if "tags" in found else ()
    properties = _properties(found["properties"]) if "properties" in found else {}
    if device_id is not None:
        return DeviceSpec(id=device_id, driver=driver, driver_type=driver_type, tags=tags, properties=properties)
    return DeviceSearch(
        driver=driver,
        driver_type=driver_type,
        tags=tags,
        properties=properties,
        count=_count(found["count"]) if "count" in found else None,
    )


def _count(value: YamlValue) -> int:
    written = value.written()
    if not (written.isascii() and written.isdigit() and 1 <= int(written[:9]) <= MAX_COUNT):
        raise value.fault(f"{shown(written)} is not a number from 1 to {MAX_COUNT:,}")
    return int(written)


def _tags(value: YamlValue) -> tuple[str, ...]:
    tags = [entry.checked(checked_tag, entry.text()) for entry in value.entries()]
    return value.checked(checked_tags, tags)


def _properties(value: YamlValue) -> dict[str, str]:
    return {key: entry.text() for key, entry in value.mapping(known=None).items()}


def _folder(value: YamlValue) -> Path:
    folder = value.file.parent / value.text()
    if not folder.is_dir():
        raise value.fault(f"{folder} is not a folder")
    return folder


def _keep(value: YamlValue) -> Keep:
    found, default = value.mapping(known=_KEEP_KEYS), Keep()
    return Keep(
        age=_duration(found["age"]) if "age" in found else default.age,
        bytes=_size(found["bytes"]) if "bytes" in found else default.bytes,
    )


def _size(value: YamlValue) -> int:
    return value.checked(parse_size, value.written())


def _duration(value: YamlValue) -> float:
    return value.checked(parse_duration, value.written())


def _name(value: YamlValue) -> str:
    return value.checked(checked_name, value.text())

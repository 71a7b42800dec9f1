"""Names that processes agree on: workflow ids, task queues, search attributes and the shape of every id."""

from __future__ import annotations

import re
from typing import Final

from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.quoting import shown

POOLS_QUEUE: Final = "toolcrib-pools"
TASKS_QUEUE: Final = "toolcrib-tasks"
LINK_QUEUE: Final = "toolcrib-link"

DEVICE_POOL: Final = "DevicePool"
SCHEDULED_TASK: Final = "ScheduledTask"
EXTERNAL_TASK: Final = "ExternalTask"
HOST: Final = "Host"
DEFINITION_RUN: Final = "DefinitionRun"
HOST_FILES: Final = "HostFiles"

SEARCH_ATTRIBUTES: Final = ("ToolcribPool", "ToolcribStatus", "ToolcribDevice", "ToolcribHost", "ToolcribGroup")
"""All of type Keyword."""

DEFAULT_POOL: Final = "default"

_LEASED: Final = "toolcrib-run-"
_NAME = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_VERSION = re.compile(r"[A-Za-z0-9._-]{1,64}")
_KEY = re.compile(r"[A-Za-z0-9._-]{1,200}")


def pool_workflow_id(pool: str) -> str:
    """Return the workflow id of a pool."""
    return f"toolcrib-pool-{pool}"


def host_workflow_id(host_id: str) -> str:
    """Return the workflow id of a host's presence."""
    return f"toolcrib-host-{host_id}"


def host_queue(host_id: str) -> str:
    """Return the task queue on which a host takes leases."""
    return f"toolcrib-host-{host_id}"


def host_work_queue(host_id: str) -> str:
    """Return the task queue for a host's presence and for workflows run under a lease."""
    return f"toolcrib-host-{host_id}-work"


def leased_workflow_id(lease_id: str) -> str:
    """Return the workflow id of what runs under a lease on its host's work queue."""
    return f"{_LEASED}{lease_id}"


def lease_of_workflow(workflow_id: str) -> str | None:
    """Return the id of the lease under which a workflow runs; None if it is none of those."""
    return workflow_id.removeprefix(_LEASED) if workflow_id.startswith(_LEASED) else None


def host_files_workflow_id(host_id: str) -> str:
    """Return the workflow id under which a host is asked for logs and artifacts."""
    return f"toolcrib-files-{host_id}"


def host_files_queue(host_id: str) -> str:
    """Return the task queue on which a host answers for its files."""
    return f"toolcrib-host-{host_id}-files"


def device_key(host_id: str, device_id: str) -> str:
    """Return the identity of a device: two hosts may both have an `emulator-5554`."""
    return f"{host_id}/{device_id}"


def lease_id(task_id: str, attempt: int, fencing: int) -> str:
    """Return the id of one lease."""
    return f"{task_id}.{attempt}.{fencing}"


def checked_name(value: str, field: str) -> str:
    """Return `value` if it can name a pool, host or device.

    Raises:
        InvalidRequest: it is empty, too long or has other characters.
    """
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidRequest(
            f"{field}: {shown(value)} is not 1 to 64 of A-Z a-z 0-9 . _ : -", hint=_both_ids(value, field)
        )
    return value


def _both_ids(value: object, field: str) -> str | None:
    """Return the hint for a device that was named by its key; None if it was not."""
    host, slash, device = value.partition("/") if isinstance(value, str) and field == "device_id" else ("", "", "")
    if not slash or not _NAME.fullmatch(host) or not _NAME.fullmatch(device):
        return None
    return f"Give host and device each by itself: --host-id {host} --device-id {device}"


def checked_version(value: str, field: str) -> str:
    """Return `value` if it can be the version in `name@version`.

    Raises:
        InvalidRequest: it is empty, too long or has other characters.
    """
    if not _VERSION.fullmatch(value):
        raise InvalidRequest(f"{field}: {shown(value)} is not 1 to 64 of A-Z a-z 0-9 . _ -")
    return value


def checked_key(value: str) -> str:
    """Return `value` if it can be an idempotency key.

    Raises:
        InvalidRequest: it is empty, too long or has other characters.
    """
    if not isinstance(value, str) or not _KEY.fullmatch(value):
        raise InvalidRequest(f"key: {shown(value)} is not 1 to 200 of A-Z a-z 0-9 . _ -")
    return value

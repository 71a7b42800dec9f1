"""The guard: spawns the work of leases, and ends it whatever becomes of the worker."""

from __future__ import annotations

from toolcrib.activities.guard.errors import GuardLost, NotKilled, SpawnFailed
from toolcrib.activities.guard.guard_tree import become_subreaper, boottime
from toolcrib.activities.guard.handle import Guard
from toolcrib.activities.guard.work import Work

__all__ = ["Guard", "GuardLost", "NotKilled", "SpawnFailed", "Work", "become_subreaper", "boottime"]

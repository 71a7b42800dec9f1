"""Names under which workflows and activities know each other."""

from __future__ import annotations

from typing import Final

MAX_HISTORY_EVENTS: Final = 1_500
"""Of one run of a pool; the server writes down all that it knows of a run's updates with each of them."""

SETTINGS: Final = "settings"
"""The memo of a pool that has its settings, to be found when it was terminated."""
HOST_KEYS: Final = "host_keys"
"""The memo of a pool that has the public keys of its hosts, likewise."""

RUN_LEASE: Final = "run_lease"
RUN_STEP: Final = "run_step"
STEP_FAILED: Final = "step_failed"
"""The type of the failure of a step that may be tried again."""
PRESENCE: Final = "presence"
ANOTHER_WORKER: Final = "another_worker"
"""The type of the failure of a presence that another worker of the host took than the one that is to show it."""
SETTLE: Final = "settle"
SILENCE: Final = "silence"
ADMIT: Final = "admit"
DELIVER: Final = "deliver"
DELIVER_PATIENTLY: Final = "deliver_patiently"
ASK_AFTER: Final = "ask_after"
TELL_HOLDERS: Final = "tell_holders"

TASK_CLAIM: Final = "claim"
TASK_GRANT: Final = "grant"
TASK_PROGRESS: Final = "progress"
TASK_COME_FORWARD: Final = "come_forward"
TASK_VIEW: Final = "view"
TASK_HOST_RESTARTED: Final = "host_restarted"
TASK_ON_RECORD: Final = "on_record"
EXTERNAL_END: Final = "end"

POOL_ADMIT: Final = "admit"
POOL_SETTLE: Final = "settle"
POOL_SILENCE: Final = "silence"
POOL_REGISTER: Final = "register"
POOL_STANDING: Final = "standing"
POOL_ENROLL: Final = "enroll"
POOL_LEAVE: Final = "leave"
POOL_DEVICE: Final = "device"
POOL_HOST: Final = "host"
POOL_CONFIGURE: Final = "configure"
POOL_ASSIGN: Final = "assign"
POOL_VIEW: Final = "view"
POOL_MEMBERS: Final = "members"
POOL_REASONS: Final = "reasons"
POOL_STRATEGIES: Final = "strategies"

HOST_HELLO: Final = "hello"

FILES_READ: Final = "read"
FILES_LIST: Final = "list"

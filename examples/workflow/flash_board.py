"""A Temporal workflow of one's own that needs a device: it writes an image to a board, and boots it.

    toolcrib up --plugin flash_board                  (in this folder)
    toolcrib submit --workflow FlashBoard --input image=FILE --wait

The board is a file here; in a lab these activities would speak to what `lease.device` describes.
"""

from __future__ import annotations

import hashlib
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

from toolcrib.worker import LeasedInput, current_lease

BLOCK = 64 * 1024
TIMEOUT = timedelta(minutes=10)


@activity.defn
def write_image(image: str, pause: float) -> str:
    """Write the image to the board block by block, and return its digest. Tried again, it goes on where it was."""
    lease = current_lease()
    done = activity.info().heartbeat_details
    data, written = Path(image).read_bytes(), int(done[0]) if done else 0
    with (lease.folder / "board.flash").open("ab") as board:
        board.truncate(written)
        while written < len(data):
            written += board.write(data[written : written + BLOCK])
            board.flush()
            lease.progress(0.9 * written / len(data), f"{written} of {len(data)} bytes")  # raises if the lease is lost
            activity.heartbeat(written)
            time.sleep(pause)
    return hashlib.sha256(data).hexdigest()


@activity.defn
def boot(digest: str) -> str:
    """Boot the board; one that has another image than it should does not."""
    lease = current_lease()
    found = hashlib.sha256((lease.folder / "board.flash").read_bytes()).hexdigest()
    if found != digest:
        raise ApplicationError(f"board {lease.device.id} has image {found[:8]}, not {digest[:8]}", non_retryable=True)
    lease.progress(1.0, "booted")
    lease.log.line(f"booted {digest}")  # for `toolcrib logs`
    (lease.artifacts / "boot.log").write_text(f"booted {digest}\n", encoding="utf-8")
    return f"{lease.device.id} runs {digest[:8]}"


@workflow.defn
class FlashBoard:
    """Each step is in the Web UI, with its retries; all of it happens while the task has the board."""

    @workflow.run
    async def run(self, given: LeasedInput) -> dict[str, Any]:
        """Flash the board and boot it."""
        digest = await workflow.execute_activity(
            write_image,
            args=[given.inputs["image"], float(given.inputs.get("pause", 0))],
            start_to_close_timeout=TIMEOUT,
            heartbeat_timeout=timedelta(seconds=30),
            retry_policy=RetryPolicy(maximum_attempts=3),
            summary=f"to {given.device.id}",
        )
        said = await workflow.execute_activity(boot, digest, start_to_close_timeout=TIMEOUT)
        return {"board": given.device.id, "digest": digest, "said": said}


WORKFLOWS = [FlashBoard]
ACTIVITIES = [write_image, boot]

"""How a run notices that it was made by resetting an earlier one, from Temporal's Web UI or command line.

Such a run begins with the first part of the earlier one's history, which is replayed. The SDK does not say where that
ends, but a patch does: asked for the first time after it, in a run that is no longer replayed, the patch is there.
"""

from __future__ import annotations

from temporalio import workflow


class ResetWatch:
    """Says once that the run of the workflow in which it was made was reset."""

    def __init__(self) -> None:
        info = workflow.info()
        self._watching = info.run_id != info.original_execution_run_id
        self._noticed_in = 0
        self.at: float | None = None
        """When the run began that it noticed last, in unix seconds."""

    def noticed(self) -> bool:
        """Return True the first time that it is asked after the point of a reset."""
        task = workflow.info().get_current_history_length()
        # While a history is replayed it tells by itself; who replays it need not know the ids of its runs.
        if task == self._noticed_in or not (self._watching or workflow.unsafe.is_replaying()):
            return False
        if not workflow.patched(f"reset-{task}"):
            return False
        self._watching, self._noticed_in, self.at = False, task, workflow.time()
        return True

    def handled(self, run_id: str) -> None:
        """Take note of the run that has handled what was noticed.

        If it was an earlier run, since a run that was reset was itself reset later, another reset is yet to come.
        """
        self._watching = run_id != workflow.info().run_id

"""A task that the namespace no longer keeps. Case E01."""

from __future__ import annotations

import pytest

from support.lab import Lab, eventually
from support.operator import delete
from toolcrib.client import UnknownTask


async def test_case_e01_a_task_that_is_kept_no_longer_is_not_found(lab: Lab) -> None:
    """Status, result, cancel and watch say so at once, it is in no list, and its key is free for a new task."""
    crib = await lab.pool()
    async with lab.host():
        task = await crib.submit("echo once", key="nightly")
        await task.result()
        await delete(lab, task.id)
        for call in (task.status(), task.result(), task.cancel(), anext(task.watch())):
            with pytest.raises(UnknownTask, match="no such task: task-nightly") as caught:
                await call
            assert "longer ago than the namespace keeps workflows" in (caught.value.hint or "")
            assert caught.value.exit_code == 8
        await eventually(crib.tasks, lambda views: not views)
        again = await crib.submit("echo twice", key="nightly")
        assert (await again.result())["output"] == "twice\n"

"""Runs of workflow definitions, acted out in a lab of their own so that their histories can be recorded."""

from __future__ import annotations

from typing import Any, Final

from temporalio.client import WorkflowHandle

from support.definitions import put
from support.lab import Lab, until_status
from toolcrib.client import TaskHandle
from toolcrib.scheduling.names import leased_workflow_id

AnyRun = WorkflowHandle[Any, Any]


async def definition_done(lab: Lab) -> list[AnyRun]:
    """One step fails once, one may fail, one is skipped; outputs are put together of what is left."""
    put(
        lab.folder,
        "done",
        {"run": "test -e again || { touch again; exit 1; }; echo said", "retry": {"max_attempts": 2}},
        {"run": "exit 3", "continue_on_error": True},
        {"run": "echo", "when": "${{ steps.s2.exit_code == 0 }}"},
        {"run": "cat", "stdin": "${{ steps.s1.stdout }}", "env": {"N": "${{ inputs.n }}"}},
        inputs={"n": {"type": "integer", "default": "1"}},
        outputs={"said": "${{ steps.s4.stdout }}", "n": "${{ inputs.n }}"},
    )
    return await _run(lab, "done", "done")


async def definition_failed(lab: Lab) -> list[AnyRun]:
    """A step fails, and with it the definition."""
    put(lab.folder, "failed", {"run": "echo broken; exit 3"}, {"run": "echo"})
    return await _run(lab, "failed", "failed")


async def _run(lab: Lab, name: str, status: str) -> list[AnyRun]:
    crib = await lab.pool()
    async with lab.host(workflow="definition", definitions=lab.folder):
        task: TaskHandle = await crib.submit(workflow=name, key=f"definition-{name}")
        view = await until_status(task, status)
    return [lab.client.get_workflow_handle(leased_workflow_id(view.attempts[0].lease_id or ""))]


DEFINITION_SCENARIOS: Final = (definition_done, definition_failed)

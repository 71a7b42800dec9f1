"""Messages that no handler can take must not stop a workflow: anybody may send them, with Temporal's own tools.

What cannot be decoded, the SDK refuses or drops by itself. A wrong number of arguments it passes on, and the handler's
TypeError would make the workflow's task fail again and again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from temporalio import workflow
from temporalio.worker import (
    HandleSignalInput,
    HandleUpdateInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.workflows.failures import to_failure


class CountedArguments(Interceptor):
    """Drops signals, and refuses updates, that have too few or too many arguments. For all workers with workflows."""

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002 - as its base
        """Return what stands before the handlers."""
        return _Counting


class _Counting(WorkflowInboundInterceptor):
    async def handle_signal(self, input: HandleSignalInput) -> None:  # noqa: A002 - as its base
        if _takes(workflow.get_signal_handler(input.signal), input.args):
            await super().handle_signal(input)
        else:
            workflow.logger.warning("a signal with a wrong number of arguments was dropped: %s", input.signal)

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:  # noqa: A002 - as its base
        if not _takes(workflow.get_update_handler(input.update), input.args):
            raise to_failure(InvalidRequest(f"{input.update} has a wrong number of arguments"))
        return await super().handle_update_handler(input)


def _takes(handler: Callable[..., Any] | None, arguments: Sequence[Any]) -> bool:
    if handler is None:
        return True
    try:
        inspect.signature(handler).bind(*arguments)
    except TypeError:
        return False
    return True

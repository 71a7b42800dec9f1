"""What a workflow answers and orders while its history is replayed, held against what it answered and ordered then.

Temporal's own replay compares the kinds of commands only: a pool that gave a task another device would pass it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import (
    HandleUpdateInput,
    Interceptor,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)


class DecidedOtherwise(Exception):
    """A workflow answers an update, or orders an activity, in another way than its history says."""


class Decisions(Interceptor):
    """Takes down what workflows answer and order while they are replayed."""

    def __init__(self) -> None:
        self._answers: dict[str, dict[str, Any]] = defaultdict(dict)
        self._orders: dict[str, list[Sequence[Any]]] = defaultdict(list)

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002 - as Interceptor
        """Give what is taken down a way out of the sandbox."""
        input.unsafe_extern_functions["toolcrib_answered"] = self._answered
        input.unsafe_extern_functions["toolcrib_ordered"] = self._ordered
        return _Listener

    def check(self, history: WorkflowHistory) -> None:
        """Compare a history with what its replay decided; what is new in an answer or order is fine.

        Raises:
            DecidedOtherwise: something that was in it is not, or is not the same.
        """
        # A run that was reset is replayed under the id of the one that it was made of.
        orders, answers = iter(self._orders.pop(history.run_id, [])), self._answers.pop(history.run_id, {})
        for event in history.events:
            if event.HasField("activity_task_scheduled_event_attributes"):
                _compare(event.activity_task_scheduled_event_attributes.input.payloads, next(orders))
            elif event.HasField("workflow_execution_update_completed_event_attributes"):
                completed = event.workflow_execution_update_completed_event_attributes
                if completed.outcome.HasField("success"):
                    answer = answers[completed.meta.update_id]
                    _compare(completed.outcome.success.payloads, [answer])

    def _answered(self, run_id: str, update_id: str, answer: Any) -> None:
        self._answers[run_id][update_id] = answer

    def _ordered(self, run_id: str, args: Sequence[Any]) -> None:
        self._orders[run_id].append(args)


class _Listener(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Outbound(outbound))

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:  # noqa: A002 - as its base
        answer = await super().handle_update_handler(input)
        workflow.extern_functions()["toolcrib_answered"](workflow.info().run_id, input.id, answer)
        return answer


class _Outbound(WorkflowOutboundInterceptor):
    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:  # noqa: A002 - as its base
        workflow.extern_functions()["toolcrib_ordered"](workflow.info().run_id, input.args)
        return super().start_activity(input)


def _compare(recorded: Sequence[Payload], replayed: Sequence[Any]) -> None:
    then = list(_json(recorded))
    now = list(_json(pydantic_data_converter.payload_converter.to_payloads(replayed)))
    if not _holds(now, then):
        raise DecidedOtherwise(f"now {now}, then {then}")


def _json(payloads: Sequence[Payload]) -> Iterator[Any]:
    for payload in payloads:
        yield json.loads(payload.data) if payload.data else None


def _holds(now: Any, then: Any) -> bool:
    """Return whether all that was in `then` is in `now`."""
    if isinstance(then, dict):
        return isinstance(now, dict) and all(key in now and _holds(now[key], part) for key, part in then.items())
    if isinstance(then, list):
        return isinstance(now, list) and len(now) == len(then) and all(map(_holds, now, then))
    return bool(now == then)

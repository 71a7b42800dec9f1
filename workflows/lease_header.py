"""Tells activities under which lease they run, also those of a workflow's children."""

from __future__ import annotations

from typing import Any, Final

from temporalio import workflow
from temporalio.worker import (
    Interceptor,
    StartActivityInput,
    StartLocalActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from toolcrib.scheduling.names import lease_of_workflow

LEASE_HEADER: Final = "toolcrib-lease"


class LeaseHeaders(Interceptor):
    """Adds the id of the lease to each activity of a workflow that runs under one."""

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002 - as its base
        """Return what stands before a workflow's own calls."""
        return _Inbound


class _Inbound(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Outbound(outbound))


class _Outbound(WorkflowOutboundInterceptor):
    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:  # noqa: A002 - as its base
        _mark(input)
        return super().start_activity(input)

    def start_local_activity(self, input: StartLocalActivityInput) -> workflow.ActivityHandle[Any]:  # noqa: A002 - as its base
        _mark(input)
        return super().start_local_activity(input)


def _mark(call: StartActivityInput | StartLocalActivityInput) -> None:
    info = workflow.info()
    lease_id = lease_of_workflow(info.root.workflow_id if info.root else info.workflow_id)
    if lease_id is not None:
        call.headers = {**call.headers, LEASE_HEADER: workflow.payload_converter().to_payload(lease_id)}

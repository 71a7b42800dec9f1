"""A client whose calls arrive while their answers are lost: what was done is done, and the caller does not know."""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio.client import (
    Client,
    CompleteAsyncActivityInput,
    Interceptor,
    OutboundInterceptor,
    SignalWorkflowInput,
    StartWorkflowUpdateInput,
    WorkflowUpdateHandle,
)
from temporalio.service import RPCError, RPCStatusCode


class LostAnswers(Interceptor):
    """Loses the first answer to these calls, updates, signals and `report`; a late one it keeps for a while."""

    def __init__(self, *calls: str, late: str | None = None) -> None:
        self.left = list(calls)
        self.may_go = asyncio.Event()
        self._late = late

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002 - the SDK's name
        """Come between the client and the server."""
        return _Between(next, self)

    async def delay(self, call: str) -> None:
        """Keep the answer to a late call until it may go."""
        if call == self._late:
            await self.may_go.wait()

    def lose(self, call: str) -> None:
        """Raise what a broken connection raises, the first time."""
        if call in self.left:
            self.left.remove(call)
            raise RPCError("connection reset", RPCStatusCode.UNAVAILABLE, b"")


class _Between(OutboundInterceptor):
    def __init__(self, following: OutboundInterceptor, answers: LostAnswers) -> None:
        super().__init__(following)
        self._answers = answers

    async def start_workflow_update(self, input: StartWorkflowUpdateInput) -> WorkflowUpdateHandle[Any]:  # noqa: A002
        handle = await super().start_workflow_update(input)
        await self._answers.delay(input.update)
        self._answers.lose(input.update)
        return handle

    async def signal_workflow(self, input: SignalWorkflowInput) -> None:  # noqa: A002
        await super().signal_workflow(input)
        self._answers.lose(input.signal)

    async def complete_async_activity(self, input: CompleteAsyncActivityInput) -> None:  # noqa: A002
        await super().complete_async_activity(input)
        self._answers.lose("report")


def losing(client: Client, answers: LostAnswers) -> Client:
    """Return a client of the same namespace that loses these answers."""
    config = client.config()
    config["interceptors"] = [answers]
    return Client(**config)

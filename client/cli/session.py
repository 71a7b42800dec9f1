"""What every command has: where to connect to, and how to write its answer."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

from toolcrib.client.cli.output import Output, note
from toolcrib.scheduling.names import DEFAULT_POOL

if TYPE_CHECKING:
    from toolcrib.client import Toolcrib

PATIENCE: Final = 3.0


@dataclass(frozen=True, kw_only=True)
class Session:
    """The options that all commands share; None: not given."""

    address: str | None = None
    namespace: str | None = None
    output: Output | None = None

    @property
    def as_json(self) -> bool:
        """Whether the answer is to be JSON."""
        return self.output == "json"

    def overridden_by(self, other: Session) -> Session:
        """Return these options, where `other` gives none."""
        return Session(
            address=self.address if other.address is None else other.address,
            namespace=self.namespace if other.namespace is None else other.namespace,
            output=self.output if other.output is None else other.output,
        )

    @asynccontextmanager
    async def client(self, pool: str | None = None) -> AsyncIterator[Toolcrib]:
        """Connect; inside the block, failed calls to the server are raised as toolcrib's errors.

        Raises:
            NoConnection, NotSetUp: as `Toolcrib.connect`.
        """
        if not os.environ.get("TOOLCRIB_DEBUG"):
            _silence_logs()
        with audible("the Temporal server"):
            crib = await connect(self.address, self.namespace, pool)
        from temporalio.exceptions import TemporalError

        from toolcrib.worker.rpc_faults import explain_call

        try:
            yield crib
        except TemporalError as error:
            raise explain_call(error) from error

    @asynccontextmanager
    async def answering(self, pool: str | None = None) -> AsyncIterator[Toolcrib]:
        """Do as `client` for a block that asks schedulers, and say so when an answer takes its time.

        Raises:
            NoConnection, NotSetUp: as `Toolcrib.connect`.
        """
        async with self.client(pool) as crib:
            with audible("a scheduler"):
                yield crib


@contextmanager
def audible(whom: str) -> Iterator[None]:
    """Say whom is waited for, if a block takes longer than people wait without a word."""
    patience = asyncio.get_running_loop().call_later(PATIENCE, note, f"waiting for {whom} to answer")
    try:
        yield
    finally:
        patience.cancel()


async def connect(address: str | None, namespace: str | None, pool: str | None) -> Toolcrib:
    """Connect the client. It imports Temporal, which takes its time, so it does that only now."""
    from toolcrib.client import Toolcrib

    return await Toolcrib.connect(address, namespace=namespace, pool=pool or DEFAULT_POOL)


def _silence_logs() -> None:
    """Let libraries log nothing: what a command has to say of a failure is its error, in two lines."""
    import structlog

    structlog.configure(processors=[_drop])
    logging.getLogger().addHandler(logging.NullHandler())


def _drop(*_: Any) -> NoReturn:
    from structlog import DropEvent

    raise DropEvent

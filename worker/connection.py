"""The connection to the Temporal server: made within a bounded time, or refused with the likely cause."""

from __future__ import annotations

import asyncio
import atexit
import time
from collections.abc import Callable
from functools import cache
from typing import Final

import structlog
from temporalio.client import Client
from temporalio.service import RPCError

from toolcrib.scheduling.errors import NotSetUp
from toolcrib.worker.connection_faults import NotUpYet, no_connection
from toolcrib.worker.rpc_faults import explain_rpc
from toolcrib.worker.server_setup import check_setup
from toolcrib.worker.target import Target, find_target
from toolcrib.workflows.conversion import DATA_CONVERTER

CONNECT_TIMEOUT: Final = 10.0
FIRST_PAUSE: Final = 0.5
EXIT_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 5.0
SETTLE_TIME: Final = 15.0
"""For so long after a server came up, what it lacks may still be in the making."""


async def connect(address: str | None = None, *, namespace: str | None = None) -> Client:
    """Connect to the server that the arguments, else the `TEMPORAL_*` variables, else the profile file name.

    Raises:
        NoConnection: the server is not named properly, or cannot be reached within 10 s.
        NotSetUp: the namespace or the search attributes are missing; the hint is the command that creates them.
    """
    return await connect_to(find_target(address, namespace))


async def connect_when_up(
    address: str | None = None, *, namespace: str | None = None, say: Callable[[str], None] | None = None
) -> Client:
    """Connect as `connect` does, and while the server is not up, wait for it without end.

    `say` is told once what is waited for; by default it goes to the log. What no waiting mends, such as a wrong
    certificate or a missing namespace, is raised, as by `connect`.
    """
    target = find_target(address, namespace)
    tell: Callable[[str], None] | None = say or structlog.get_logger("toolcrib").warning
    clock = asyncio.get_running_loop().time
    pause, settled_at = FIRST_PAUSE, clock()
    while True:
        try:
            return await connect_to(target)
        except NotUpYet as error:
            if tell:
                tell(f"{error.message}; waiting for it")
            tell, settled_at = None, clock() + SETTLE_TIME
        except NotSetUp:
            if clock() >= settled_at:
                raise
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


async def connect_to(target: Target) -> Client:
    """Connect to `target` and check that it is set up. Raises as `connect` does."""
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            client = await _open(target)
            await check_setup(client, target)
    except TimeoutError as error:
        raise no_connection(target, error) from None
    except RPCError as error:
        raise explain_rpc(error) from None
    return client


async def open_client(target: Target) -> Client:
    """Connect to `target` without a look at what it holds. Raises `NoConnection`."""
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            return await _open(target)
    except TimeoutError as error:
        raise no_connection(target, error) from None


@cache
def _let_calls_end_before_exit() -> None:
    """Give the SDK's threads a moment when the interpreter ends.

    A thread that has just delivered an answer may still hold on to the interpreter; if that ends meanwhile, the process
    aborts. One in eight short programs did, and none of eighty with a pause; there is nothing to wait for instead.
    """
    atexit.register(time.sleep, EXIT_PAUSE)


async def _open(target: Target) -> Client:
    _let_calls_end_before_exit()
    config = target.config
    try:
        return await Client.connect(
            target.address,
            namespace=target.namespace,
            api_key=config.get("api_key"),
            tls=config.get("tls"),
            rpc_metadata=config.get("rpc_metadata", {}),
            data_converter=DATA_CONVERTER,
        )
    except (RuntimeError, ValueError) as error:
        raise no_connection(target, error) from None

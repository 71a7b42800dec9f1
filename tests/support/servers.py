"""Temporal servers and namespaces for tests."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from datetime import timedelta

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from toolcrib.scheduling.names import SEARCH_ATTRIBUTES
from toolcrib.workflows.conversion import DATA_CONVERTER

READY_WITHIN = 20.0
"""Seconds in which a namespace must be usable; it takes about 0.02 s."""


async def connect(address: str, namespace: str = "default") -> Client:
    """Return a client of one namespace that converts data as toolcrib does."""
    return await Client.connect(address, namespace=namespace, data_converter=DATA_CONVERTER)


async def fresh_namespace(address: str) -> str:
    """Register a namespace with toolcrib's search attributes, wait until it is usable, and return its name."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    client = await connect(address, name)
    namespace = RegisterNamespaceRequest(namespace=name)
    namespace.workflow_execution_retention_period.FromTimedelta(timedelta(days=1))
    keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
    attributes = AddSearchAttributesRequest(namespace=name, search_attributes=dict.fromkeys(SEARCH_ATTRIBUTES, keyword))
    async with asyncio.timeout(READY_WITHIN):
        # The server registers some twenty namespaces a second and refuses the next ones.
        await _until_accepted(lambda: client.workflow_service.register_namespace(namespace))
        await _until_accepted(lambda: client.operator_service.add_search_attributes(attributes))
        await _until_accepted(lambda: client.count_workflows(f"{SEARCH_ATTRIBUTES[-1]} = 'known'"))
    return name


async def bare_namespace(address: str) -> str:
    """Register a namespace without toolcrib's search attributes, wait until it is known, and return its name."""
    name = f"bare-{uuid.uuid4().hex[:12]}"
    client = await connect(address, name)
    namespace = RegisterNamespaceRequest(namespace=name)
    namespace.workflow_execution_retention_period.FromTimedelta(timedelta(days=1))
    known = ListSearchAttributesRequest(namespace=name)
    async with asyncio.timeout(READY_WITHIN):
        await _until_accepted(lambda: client.workflow_service.register_namespace(namespace))
        await _until_accepted(lambda: client.operator_service.list_search_attributes(known))
        await _until_accepted(client.count_workflows)
    return name


async def _until_accepted(call: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await call()
        except RPCError:
            await asyncio.sleep(0.02)
        else:
            return

"""Whether a server has what toolcrib needs: the namespace, and the search attributes in it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from toolcrib.scheduling.errors import NotSetUp
from toolcrib.scheduling.names import SEARCH_ATTRIBUTES
from toolcrib.worker.target import DEFAULT_ADDRESS, DEFAULT_NAMESPACE, Target

_KEYWORD: Final = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
_MAY_NOT_ASK: Final = {RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED}


async def check_setup(client: Client, target: Target) -> None:
    """Check the namespace and the search attributes; who is not permitted to ask for them is believed to have them.

    Raises:
        NotSetUp: something is missing; the hint is the command that creates it.
        RPCError: the server failed otherwise.
    """
    await asyncio.gather(check_namespace(client, target), check_search_attributes(client, target))


async def check_namespace(client: Client, target: Target) -> None:
    """Check that the namespace exists. Raises as `check_setup` does."""
    try:
        await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=target.namespace))
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise missing_namespace(target) from None
        if error.status not in _MAY_NOT_ASK:
            raise


async def check_search_attributes(client: Client, target: Target) -> None:
    """Check that every search attribute exists and is a Keyword. Raises as `check_setup` does."""
    try:
        answer = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=target.namespace)
        )
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise missing_namespace(target) from None
        if error.status not in _MAY_NOT_ASK:
            raise
    else:
        check_types(answer.custom_attributes, target)


def check_types(found: Mapping[str, IndexedValueType.ValueType], target: Target) -> None:
    """Check the search attributes that were `found`, with their types.

    Raises:
        NotSetUp: one is missing or of another type than Keyword.
    """
    wrong = {name: found[name] for name in SEARCH_ATTRIBUTES if name in found and found[name] != _KEYWORD}
    if wrong:
        raise _wrong_types(wrong, target)
    missing = [name for name in SEARCH_ATTRIBUTES if name not in found]
    if missing:
        message = f"namespace {target.namespace!r} of {target.address} lacks the search attributes {', '.join(missing)}"
        raise NotSetUp(message, hint=f"Create them: {_create(missing, target)}")


def missing_namespace(target: Target) -> NotSetUp:
    """Return the error for a namespace that does not exist."""
    command = f"temporal operator namespace create --namespace {target.namespace}{_address_option(target)}"
    return NotSetUp(
        f"the server at {target.address} has no namespace {target.namespace!r}", hint=f"Create it: {command}"
    )


def _wrong_types(wrong: Mapping[str, IndexedValueType.ValueType], target: Target) -> NotSetUp:
    described = ", ".join(f"{name} is {_type_name(kind)}" for name, kind in wrong.items())
    options = "".join(f" --name {name}" for name in wrong)
    remove = f"temporal operator search-attribute remove{options} --yes{_server_options(target)}"
    return NotSetUp(
        f"search attributes of namespace {target.namespace!r} must be of type Keyword, but {described}",
        hint=f"Create them anew: {remove} && {_create(list(wrong), target)}",
    )


def _create(names: list[str], target: Target) -> str:
    pairs = "".join(f" --name {name} --type Keyword" for name in names)
    return f"temporal operator search-attribute create{pairs}{_server_options(target)}"


def _type_name(kind: IndexedValueType.ValueType) -> str:
    return IndexedValueType.Name(kind).removeprefix("INDEXED_VALUE_TYPE_").title().replace("_", "")


def _server_options(target: Target) -> str:
    namespace = "" if target.namespace == DEFAULT_NAMESPACE else f" --namespace {target.namespace}"
    return namespace + _address_option(target)


def _address_option(target: Target) -> str:
    return "" if target.address == DEFAULT_ADDRESS else f" --address {target.address}"

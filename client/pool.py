"""A handle on one pool."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.common import QueryRejectCondition

from toolcrib.activities.pool_link import PoolLinks
from toolcrib.activities.pools import create_pool, find_pools
from toolcrib.client.patience import patiently
from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.definition_views import definition_views
from toolcrib.scheduling.errors import UnknownDevice, UnknownPool, UnknownStrategy
from toolcrib.scheduling.messages import DeviceOrder, HostKey, HostOrder
from toolcrib.scheduling.names import DEFAULT_POOL, pool_workflow_id
from toolcrib.scheduling.validation import validated
from toolcrib.scheduling.views import DefinitionView, DeviceView, HostView, PoolView
from toolcrib.workflows.contract import (
    POOL_ASSIGN,
    POOL_CONFIGURE,
    POOL_DEVICE,
    POOL_HOST,
    POOL_STRATEGIES,
    POOL_VIEW,
)

TIMEOUT: Final = timedelta(seconds=10)


class PoolHandle:
    """One pool, by its name. Options are the fields of `PoolConfig`; durations are seconds."""

    def __init__(self, client: Client, links: PoolLinks, name: str) -> None:
        self.name = name
        self._client = client
        self._links = links

    @property
    def _handle(self) -> WorkflowHandle[Any, Any]:
        return self._client.get_workflow_handle(pool_workflow_id(self.name))

    async def create(self, **options: Any) -> None:
        """Create the pool.

        Raises:
            InvalidRequest: an option is unknown or out of its limits, or the pool exists.
            UnknownStrategy: the scheduler has no such strategy.
        """
        config = validated(PoolConfig, options)
        known = await self._known_strategies()
        if known is not None and config.strategy not in known:
            raise UnknownStrategy.named(config.strategy, known)
        await create_pool(self._client, self.name, config)

    async def configure(self, **options: Any) -> None:
        """Change some options; running tasks are not disturbed.

        Raises:
            InvalidRequest: an option is unknown or out of its limits.
            UnknownStrategy: the scheduler has no such strategy.
            UnknownPool: there is no such pool.
        """
        await self._ask(lambda: self._handle.execute_update(POOL_CONFIGURE, options, rpc_timeout=TIMEOUT))

    async def show(self) -> PoolView:
        """Return the pool's settings, devices, hosts and queue.

        Raises:
            UnknownPool: there is no such pool.
        """
        view: PoolView = await self._ask(
            lambda: self._handle.query(
                POOL_VIEW,
                result_type=PoolView,
                reject_condition=QueryRejectCondition.NOT_OPEN,
                rpc_timeout=TIMEOUT,
            )
        )
        return view

    async def check_exists(self) -> None:
        """Check that the pool's workflow runs; this needs no scheduler.

        Raises:
            UnknownPool: it does not, or not any more.
        """

        async def check() -> None:
            found = await self._handle.describe(rpc_timeout=TIMEOUT)
            if found.status is not WorkflowExecutionStatus.RUNNING:
                raise UnknownPool.ended(self.name)

        await self._ask(check)

    async def assign(self) -> int:
        """Have the pool decide now, and return how many leases it granted; it also decides by itself.

        Raises:
            UnknownPool: there is no such pool.
        """
        granted: int = await self._ask(
            lambda: self._handle.execute_update(POOL_ASSIGN, result_type=int, rpc_timeout=TIMEOUT)
        )
        return granted

    async def devices(self) -> list[DeviceView]:
        """Return the pool's devices, in the order in which they were registered.

        Raises:
            UnknownPool: there is no such pool.
        """
        return (await self.show()).devices

    async def device(self, key: str) -> DeviceView:
        """Return the device called `key`, which is `HOST/DEVICE`.

        Raises:
            UnknownDevice: the pool has no such device.
            UnknownPool: there is no such pool.
        """
        for view in await self.devices():
            if view.key == key:
                return view
        raise UnknownDevice.named("device", key, self.name)

    async def drain_device(self, key: str) -> DeviceView:
        """Take a device out of service: who holds it may finish, nobody else gets it. Returns how it is then.

        Raises:
            UnknownDevice: the pool has no such device.
            UnknownPool: there is no such pool.
        """
        return await self._order_device(DeviceOrder(key=key, kind="drain"))

    async def resume_device(self, key: str) -> DeviceView:
        """Let tasks have a device again that was out of service, rests or is quarantined; its failures are forgotten.

        Raises:
            UnknownDevice: the pool has no such device.
            UnknownPool: there is no such pool.
        """
        return await self._order_device(DeviceOrder(key=key, kind="resume"))

    async def quarantine_device(self, key: str, reason: str) -> DeviceView:
        """Keep a device from tasks, for a `reason` that people see, until it is resumed; who holds it may finish.

        Raises:
            InvalidRequest: the reason is empty, too long or cannot be printed.
            UnknownDevice: the pool has no such device.
            UnknownPool: there is no such pool.
        """
        return await self._order_device(DeviceOrder(key=key, kind="quarantine", reason=reason))

    async def hosts(self) -> list[HostView]:
        """Return the pool's hosts, in the order in which they first came.

        Raises:
            UnknownPool: there is no such pool.
        """
        return (await self.show()).hosts

    async def definitions(self) -> list[DefinitionView]:
        """Return the workflows that the pool's hosts say they run, by name.

        Raises:
            UnknownPool: there is no such pool.
        """
        return definition_views(await self.hosts())

    async def drain_host(self, host_id: str) -> HostView:
        """Take all devices of a host out of service: what runs there may finish. Returns how the host is then.

        It is drained when its state is no longer `draining`.

        Raises:
            UnknownDevice: the pool has no such host.
            UnknownPool: there is no such pool.
        """
        return await self._order_host(HostOrder(host_id=host_id, kind="drain"))

    async def resume_host(self, host_id: str) -> HostView:
        """Let tasks have the devices of a host again, but for those that are out of service themselves.

        Raises:
            UnknownDevice: the pool has no such host.
            UnknownPool: there is no such pool.
        """
        return await self._order_host(HostOrder(host_id=host_id, kind="resume"))

    async def enroll_host(self, host_id: str, public_key: str) -> HostView:
        """Let a host serve the pool's tasks: only who has the private key to `public_key` can claim and end them.

        Raises:
            InvalidRequest: the key is malformed, or the host is enrolled with another.
            UnknownPool: there is no such pool.
        """
        return await self._enroll(HostKey(host_id=host_id, public_key=public_key))

    async def revoke_host(self, host_id: str) -> HostView:
        """Give no more leases to a host: its public key is forgotten. What runs there may finish.

        Raises:
            UnknownDevice: the pool has no such host.
            UnknownPool: there is no such pool.
        """
        return await self._enroll(HostKey(host_id=host_id, public_key=None))

    async def strategies(self) -> list[str]:
        """Return the strategies that the pool's scheduler knows.

        Raises:
            UnknownPool: there is no such pool.
        """
        names: list[str] = await self._ask(
            lambda: self._handle.query(POOL_STRATEGIES, result_type=list[str], rpc_timeout=TIMEOUT)
        )
        return names

    async def _known_strategies(self) -> list[str] | None:
        """Return the strategies that the scheduler knows; None if there is no pool to ask."""
        pools = [DEFAULT_POOL, *[found.name async for found in find_pools(self._client)]]
        for name in pools:
            with suppress(UnknownPool):
                return await PoolHandle(self._client, self._links, name).strategies()
        return None

    async def _enroll(self, order: HostKey) -> HostView:
        return await patiently(lambda: self._links.to(self.name).enroll(order))

    async def _order_device(self, order: DeviceOrder) -> DeviceView:
        view: DeviceView = await self._ask(
            lambda: self._handle.execute_update(POOL_DEVICE, order, result_type=DeviceView, rpc_timeout=TIMEOUT)
        )
        return view

    async def _order_host(self, order: HostOrder) -> HostView:
        view: HostView = await self._ask(
            lambda: self._handle.execute_update(POOL_HOST, order, result_type=HostView, rpc_timeout=TIMEOUT)
        )
        return view

    async def _ask(self, call: Any) -> Any:
        return await patiently(lambda: self._links.to(self.name).ask(call))

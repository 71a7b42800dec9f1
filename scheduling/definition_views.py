"""Which workflows there are in a pool, as its hosts say."""

from __future__ import annotations

from collections.abc import Iterable

from toolcrib.scheduling.errors import UnknownDefinition
from toolcrib.scheduling.references import FUNCTIONS, near, runs
from toolcrib.scheduling.views import DefinitionView, HostView


def definition_views(hosts: Iterable[HostView]) -> list[DefinitionView]:
    """Return each workflow once, by name; the versions of one in the order of the host that was asked first."""
    where: dict[str, list[str]] = {}
    for host in hosts:
        for reference in host.workflows or ():
            if reference == FUNCTIONS:
                continue
            where.setdefault(reference, []).append(host.id)
    found = [_view(reference, host_ids) for reference, host_ids in where.items()]
    return sorted(found, key=lambda view: view.name)


def definitions_like(views: list[DefinitionView], reference: str, pool: str) -> list[DefinitionView]:
    """Return what a task may get that asks for `reference`: that version, or all of that name.

    Raises:
        UnknownDefinition: there is none; the hint says what may be meant.
    """
    found = [view for view in views if runs((view.reference,), reference)]
    if not found:
        raise UnknownDefinition.named(reference, pool, near(reference, (view.reference for view in views)))
    return found


def _view(reference: str, hosts: list[str]) -> DefinitionView:
    name, at, version = reference.partition("@")
    return DefinitionView(reference=reference, name=name, version=version if at else None, hosts=hosts)

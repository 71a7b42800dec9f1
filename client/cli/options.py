"""Options that several commands have, and how their texts are understood."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

NONE: Final = "none"

Pool = Annotated[str | None, typer.Option(metavar="NAME", help="The pool.")]
GroupId = Annotated[str | None, typer.Option("--group", metavar="ID", help="The group.")]
TaskIds = Annotated[list[str] | None, typer.Argument(metavar="ID", help="Ids of tasks.", show_default=False)]

Strategy = Annotated[str | None, typer.Option(metavar="NAME", help="Who gets what; see: toolcrib strategies.")]
MaxConcurrent = Annotated[
    str | None, typer.Option(metavar="N|none", help="Leases at once; none: as many as there are devices.")
]
MaxQueueDepth = Annotated[int | None, typer.Option(metavar="N", help="How many tasks may be queued.")]
ClaimTimeout = Annotated[
    str | None, typer.Option(metavar="DURATION", help="How long a host may take to claim a lease.")
]
LeaseTtl = Annotated[
    str | None, typer.Option(metavar="DURATION", help="How long a lease holds without renewal; at least 3s.")
]
MaxAttempts = Annotated[int | None, typer.Option(metavar="N", help="Attempts of a task that names no number.")]


def seconds(text: str | None, field: str) -> float | None:
    """Return a duration such as `30s`, `1h30m`, `PT5M` or `90` in seconds; None stays None.

    Raises:
        InvalidRequest: it is no duration.
    """
    from toolcrib.scheduling.durations import parse_duration

    return None if text is None else parse_duration(text, field)


def pool_options(
    *,
    strategy: str | None,
    max_concurrent: str | None,
    max_queue_depth: int | None,
    claim_timeout: str | None,
    lease_ttl: str | None,
    max_attempts: int | None,
) -> dict[str, Any]:
    """Return those settings of a pool that were given, by the names that `PoolConfig` has for them.

    Raises:
        InvalidRequest: a duration is none.
        typer.BadParameter: `max_concurrent` is neither a number nor `none`.
    """
    options: dict[str, Any] = {
        "strategy": strategy,
        "max_queue_depth": max_queue_depth,
        "claim_timeout": seconds(claim_timeout, "claim_timeout"),
        "lease_ttl": seconds(lease_ttl, "lease_ttl"),
        "max_attempts": max_attempts,
    }
    given = {name: value for name, value in options.items() if value is not None}
    if max_concurrent is not None:
        given["max_concurrent"] = _number_or_none(max_concurrent)
    return given


def _number_or_none(text: str) -> int | None:
    if text.lower() == NONE:
        return None
    try:
        return int(text)
    except ValueError:
        message = f"{text!r} is neither a number nor {NONE!r}"
        raise typer.BadParameter(message, param_hint="--max-concurrent") from None

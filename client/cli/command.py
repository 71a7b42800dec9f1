"""Makes a command of an async function, with the options that all commands share and examples in its help."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Final, TypeVar

import typer

from toolcrib.client.cli.output import Output, give_up_stdout
from toolcrib.client.cli.session import Session

Address = Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Temporal server; else TEMPORAL_ADDRESS.")]
Namespace = Annotated[str | None, typer.Option(metavar="NAME", help="Temporal namespace; else TEMPORAL_NAMESPACE.")]
OutputOption = Annotated[Output | None, typer.Option("--output", "-o", help="How data is written.")]

Work = TypeVar("Work", bound=Callable[..., Awaitable[None]])

_COMMON: Final = {"address": Address, "namespace": Namespace, "output": OutputOption}


def new_app(help_text: str | None = None) -> typer.Typer:
    """Return an empty group of commands, in plain text without boxes."""
    return typer.Typer(help=help_text, rich_markup_mode=None, pretty_exceptions_enable=False)


def command(app: typer.Typer, name: str, *, examples: Sequence[str]) -> Callable[[Work], Work]:
    """Add the function to `app` as command `name`.

    It gets a `Session` first, then its own options. Its docstring is the help, which ends with `examples`.
    """

    def register(work: Work) -> Work:
        app.command(name, help=inspect.getdoc(work), epilog=examples_text(examples))(_as_command(work))
        return work

    return register


def examples_text(examples: Sequence[str]) -> str:
    """Return the end of a help text. The control character keeps its lines as they are."""
    return "\n".join(["\b", "Examples:", *(f"  {example}" for example in examples)])


def _as_command(work: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    def run(context: typer.Context, **options: Any) -> None:
        common = Session(**{name: options.pop(name) for name in _COMMON})
        session = (context.obj or Session()).overridden_by(common)
        try:
            asyncio.run(_awaited(work(session, **options)))
        except BrokenPipeError:
            give_up_stdout()

    parameters = [
        inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context),
        *list(inspect.signature(work, eval_str=True).parameters.values())[1:],
        *(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=None)
            for name, kind in _COMMON.items()
        ),
    ]
    vars(run)["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


async def _awaited(work: Awaitable[None]) -> None:
    await work

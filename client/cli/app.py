"""Puts the commands together and turns every end of them into an exit code."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from typing import Annotated, Final, NoReturn

import typer

from toolcrib.client.cli import (
    cancel,
    definition,
    device,
    doctor,
    external,
    host,
    logs,
    pool,
    processes,
    strategies,
    submit,
    tasks,
    watch,
)
from toolcrib.client.cli.command import Address, Namespace, OutputOption, examples_text, new_app
from toolcrib.client.cli.output import end_process, give_up_stdout, say, survive_any_terminal
from toolcrib.client.cli.report import report, report_usage, unexpected_hook, unwritable, wants_json
from toolcrib.client.cli.session import Session
from toolcrib.scheduling.errors import ToolcribError

EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130
EXIT_UNWRITABLE: Final = 1
_CANNOT_WRITE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

_EXAMPLES = ["toolcrib up", "toolcrib submit 'echo hello' --wait", "toolcrib list --state running", "toolcrib doctor"]

app = new_app("Lease devices to tasks, on Temporal.")
for module in (submit, tasks, watch, logs, cancel, strategies, doctor, processes):
    app.add_typer(module.app)
app.add_typer(
    definition.app,
    name="definition",
    epilog=examples_text(["toolcrib definition validate smoke.yaml", "toolcrib definition list"]),
)
app.add_typer(device.app, name="device", epilog=examples_text(["toolcrib device list", "toolcrib device drain a/b"]))
app.add_typer(external.app, name="external", epilog=examples_text(["toolcrib external start 'nightly backup'"]))
app.add_typer(host.app, name="host", epilog=examples_text(["toolcrib host list", "toolcrib host drain lab-1"]))
app.add_typer(pool.app, name="pool", epilog=examples_text(["toolcrib pool show", "toolcrib pool create phones"]))


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(f"toolcrib {version('toolcrib')}")
        raise typer.Exit


@app.callback(epilog=examples_text(_EXAMPLES))
def root(
    context: typer.Context,
    address: Address = None,
    namespace: Namespace = None,
    output: OutputOption = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Lease devices to tasks, on Temporal. The options here may stand before or after the command."""
    context.obj = Session(address=address, namespace=namespace, output=output)


def main() -> NoReturn:
    """Run the command line of this process, and end the process with the exit code."""
    words = sys.argv[1:]
    survive_any_terminal()
    sys.excepthook = unexpected_hook(as_json=wants_json(words))
    end_process(run(words))


def run(words: Sequence[str]) -> int:
    """Run the command line `words` and return its exit code; `docs/cli.md` lists them."""
    as_json = wants_json(words)
    try:
        code = _run(list(words))
        sys.stdout.flush()
    except ToolcribError as error:
        report(error, as_json=as_json)
        return error.exit_code
    except typer.TyperException as error:
        report_usage(error, as_json=as_json)
        return EXIT_USAGE
    except (BrokenPipeError, SystemExit):  # as the latter typer reports a reader that has gone
        give_up_stdout()
        return 0
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            raise
        give_up_stdout()
        report(unwritable(error), as_json=as_json)
        return EXIT_UNWRITABLE
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    return code


def _run(words: list[str]) -> int:
    command = typer.main.get_command(app)
    return int(command.main(words, prog_name="toolcrib", standalone_mode=False) or 0)

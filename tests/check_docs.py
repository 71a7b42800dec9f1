"""Checks the documentation: runs its snippets with a real `toolcrib up` behind them, and follows its relative links.

Run by `make check`. How blocks are written and marked stands in CONTRIBUTING.md.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.snippets import Snippet, broken_links, run, snippets

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent


def main() -> int:
    """Check every page; return the exit status."""
    listed = subprocess.check_output(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT, text=True
    )
    pages = [page for name in listed.splitlines() if (page := ROOT / name).exists()]
    found = [snippet for page in pages for snippet in snippets(page)]
    for snippet in found:
        if snippet.not_run:
            print(f"not run: {_place(snippet)}: {snippet.not_run}")
    to_run = [snippet for snippet in found if not snippet.not_run]
    faults = [fault for page in pages for fault in broken_links(page)]
    if to_run:
        faults += run_all(to_run)
    for fault in faults:
        print(fault)
    print(f"{len(pages)} pages, {len(to_run)} snippets run, {len(faults)} faults")
    return 1 if faults else 0


def run_all(to_run: Sequence[Snippet]) -> list[str]:
    """Run snippets one after another, each in an empty folder, and return what is wrong with them."""
    faults = []
    with crib() as environment:
        for snippet in to_run:
            with tempfile.TemporaryDirectory() as folder:
                fault = run(snippet, Path(folder), environment)
            if fault:
                faults.append(f"{_place(snippet)}: {fault}")
    return faults


@contextmanager
def crib() -> Iterator[Mapping[str, str]]:
    """Run `toolcrib up`, and yield an environment in which commands and programs find it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "TOOLCRIB_"))}
    with tempfile.TemporaryDirectory() as home:
        environment |= {
            "TOOLCRIB_HOME": home,
            "TOOLCRIB_LOCKS": f"{home}/locks",
            "XDG_CONFIG_HOME": home,
            "NO_COLOR": "1",
            "COLUMNS": "120",
        }
        environment["PATH"] = f"{BIN}{os.pathsep}{environment['PATH']}"
        command = ["timeout", "--kill-after=30", "900", str(BIN / "toolcrib"), "up", "--port", "0", "--ui-port", "0"]
        log = Path(home) / "up.log"
        with (
            log.open("w") as talk,
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=talk, text=True) as up,
        ):
            assert up.stdout
            try:
                ready = up.stdout.readline()
                address = re.search(r"address=(\S+)", ready)
                if not address:
                    sys.exit(f"toolcrib up did not get ready: {ready}{log.read_text()}")
                yield environment | {"TEMPORAL_ADDRESS": address[1]}
            finally:
                up.terminate()


def _place(snippet: Snippet) -> str:
    return f"{snippet.file.relative_to(ROOT)}:{snippet.line}"


if __name__ == "__main__":
    sys.exit(main())

"""Snippets and links in Markdown pages: finds them, runs them, follows them."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent

TIMEOUT = ("timeout", "--kill-after=5", "120")
"""Also ends what a snippet started and left behind."""

_FENCE = re.compile(r"^ *(?P<fence>`{3,}|~{3,})(?P<language>\w*)")
_NOT_RUN = re.compile(r"<!-- not run: (?P<reason>.*\S) -->")
_LINK = re.compile(r"\]\(<?([^)>\s]+)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
_CODE = re.compile(r"^ *(`{3,}).*?^ *\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ +(.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Snippet:
    """A fenced block of a page."""

    file: Path
    line: int
    """Of its first fence, counted from 1."""
    language: str
    code: str
    not_run: str | None = None
    """Why it is not to be run."""


def snippets(file: Path) -> Iterator[Snippet]:
    """Yield the `python` and `console` blocks of a page."""
    lines = iter(enumerate(file.read_text(encoding="utf-8").splitlines(), 1))
    above = ""
    for number, line in lines:
        fence = _FENCE.match(line)
        if not fence:
            above = line if line.strip() else above
            continue
        body: list[str] = []
        for _, inner in lines:
            if inner.strip().startswith(fence["fence"]):
                break
            body.append(inner)
        if fence["language"] in {"python", "console"}:
            marked = _NOT_RUN.search(above)
            yield Snippet(
                file=file,
                line=number,
                language=fence["language"],
                code=dedent("\n".join(body)) + "\n",
                not_run=marked["reason"] if marked else None,
            )
        above = ""


def run(snippet: Snippet, folder: Path, environment: Mapping[str, str]) -> str | None:
    """Run a snippet in `folder`; return what is wrong with it, or None."""
    return (_run_python if snippet.language == "python" else _run_console)(snippet, folder, environment)


def broken_links(file: Path) -> Iterator[str]:
    """Yield what is wrong with each relative link of a page that leads nowhere."""
    text = _CODE.sub("", file.read_text(encoding="utf-8"))
    for inline, reference in _LINK.findall(text):
        target = inline or reference
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        page = file.parent / path if path else file
        if not page.exists():
            yield f"{file}: the link {target} leads nowhere"
        elif anchor and page.suffix == ".md" and anchor not in _anchors(page):
            yield f"{file}: the link {target} leads to no heading"


def _anchors(page: Path) -> set[str]:
    headings = _HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _run_python(snippet: Snippet, folder: Path, environment: Mapping[str, str]) -> str | None:
    program = folder / "snippet.py"
    program.write_text(snippet.code, encoding="utf-8")
    status, output = _finished([sys.executable, program.name], folder, environment)
    return f"ended with status {status}:\n{indent(output, '    ')}" if status else None


def _run_console(snippet: Snippet, folder: Path, environment: Mapping[str, str]) -> str | None:
    steps = _steps(snippet.code)
    script = "".join(f"{{ {command}\n}} 2>&1; printf '\\0%s\\0' $?\n" for command, _ in steps)
    _, output = _finished(["bash", "-c", script], folder, environment)
    said = output.split("\0")
    for (command, expected), got, status in zip(steps, said[::2], said[1::2], strict=False):
        if status != "0":
            return f"`{command}` ended with status {status}:\n{indent(got, '    ')}"
        if expected and not doctest.OutputChecker().check_output(expected, got, doctest.ELLIPSIS):
            return f"`{command}` printed something else:\n{indent(got, '    ')}"
    return None if len(said) > 2 * len(steps) else f"did not get to its end:\n{indent(said[-1], '    ')}"


def _steps(code: str) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with the output that must come."""
    steps: list[tuple[str, str]] = []
    for line in code.splitlines(keepends=True):
        if line.startswith("$ "):
            steps.append((line[2:].rstrip(), ""))
        elif steps:
            command, expected = steps[-1]
            continued = line.startswith("> ") and not expected
            steps[-1] = (f"{command}\n{line[2:].rstrip()}", "") if continued else (command, expected + line)
    return steps


def _finished(command: list[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        [*TIMEOUT, *command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout

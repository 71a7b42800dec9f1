"""How the documentation is checked: a check that finds nothing wrong with wrong pages is worth nothing."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import dedent

import pytest

from support.snippets import broken_links, run, snippets


def page(folder: Path, text: str) -> Path:
    """Return a page with that text."""
    file = folder / "page.md"
    file.write_text(dedent(text), encoding="utf-8")
    return file


def fault(folder: Path, language: str, code: str) -> str | None:
    """Return what is wrong with a block, when it is run."""
    (snippet,) = snippets(page(folder, f"```{language}\n{code}```\n"))
    return run(snippet, folder, os.environ)


def test_blocks_are_found_with_their_marks(tmp_path: Path) -> None:
    """Blocks of the two languages are found, in lists too; a mark belongs to the next block alone."""
    text = """\
    Text with `code`.

    <!-- not run: needs a phone -->

    ```console
    $ adb devices
    ```

    - In a list:
      ```python
      if True:
          print(1)
      ```

    ~~~~sh
    ```python
    ~~~~
    """
    first, second = snippets(page(tmp_path, text))
    assert (first.line, first.language, first.not_run) == (5, "console", "needs a phone")
    assert (second.line, second.code, second.not_run) == (10, "if True:\n    print(1)\n", None)


def test_a_mark_needs_a_reason(tmp_path: Path) -> None:
    """A mark without a reason skips nothing."""
    (snippet,) = snippets(page(tmp_path, "<!-- not run: -->\n```python\n1\n```\n"))
    assert snippet.not_run is None


def test_python_must_succeed(tmp_path: Path) -> None:
    """A program that raises is a fault, with its traceback."""
    assert fault(tmp_path, "python", "print(1)\n") is None
    assert "ZeroDivisionError" in (fault(tmp_path, "python", "1 / 0\n") or "")


@pytest.mark.parametrize(
    "code",
    [
        "$ echo one\none\n$ echo two\ntwo\n",
        "$ name=me\n$ echo hello $name\nhello me\n",
        "$ printf 'a\\nb\\nc\\n'\na\n...\nc\n",
        "$ echo id 0197-af is queued\nid ... is queued\n",
        "$ echo one \\\n> two\none two\n",
        "$ echo unchecked\n",
        "$ cat <<END\n> text\n> END\ntext\n",
        "$ echo talk >&2\ntalk\n",
    ],
)
def test_a_console_block_that_tells_the_truth_passes(tmp_path: Path, code: str) -> None:
    """Commands share one shell; `...` stands for anything; no output lines, no comparison."""
    assert fault(tmp_path, "console", code) is None


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("$ echo one\ntwo\n", "`echo one` printed something else:\n    one"),
        ("$ echo one\none\nand more\n", "printed something else"),
        ("$ false\n", "`false` ended with status 1"),
        ("$ true\n$ no-such-program\n", "`no-such-program` ended with status 127"),
        ("$ exit 3\n", "did not get to its end"),
    ],
)
def test_a_console_block_that_lies_is_a_fault(tmp_path: Path, code: str, said: str) -> None:
    """Other output, a status that is not 0, or a shell that is gone, are faults that name the command."""
    assert said in (fault(tmp_path, "console", code) or "")


def test_links_are_followed(tmp_path: Path) -> None:
    """Relative links must lead to a file, and to a heading if they name one; code and addresses are left alone."""
    text = """\
    # What it is, and does

    [self](#what-it-is-and-does) [page](page.md#what-it-is-and-does) [web](https://example.invalid) [mail](mailto:a@b.c)
    `[code](nowhere.md)`

    ```
    [code](nowhere.md)
    ```

    [gone](gone.md) [no heading](#nothing) ![picture](missing.svg)

    [reference]: absent/page.md
    """
    file = page(tmp_path, text)
    assert [fault.removeprefix(f"{file}: the link ") for fault in broken_links(file)] == [
        "gone.md leads nowhere",
        "#nothing leads to no heading",
        "missing.svg leads nowhere",
        "absent/page.md leads nowhere",
    ]

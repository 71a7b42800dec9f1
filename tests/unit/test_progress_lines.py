"""What a command prints about its progress is found, whatever else it prints and however it comes in pieces."""

from __future__ import annotations

import pytest

from toolcrib.activities.runners.progress_lines import MAX_LINE, ProgressLines
from toolcrib.scheduling.progress import checked_progress


class Work:
    """A command's output: what was reported from it, and what is kept of it."""

    def __init__(self, printed: bytes, piece: int = 1_000_000) -> None:
        self.told: list[tuple[float, str | None]] = []
        lines = ProgressLines(self._report)
        pieces = [printed[at : at + piece] for at in range(0, len(printed), piece)]
        self.kept = b"".join([*map(lines.take, pieces), lines.rest()])

    def _report(self, value: float, message: str | None) -> None:
        checked_progress("task-1.1.7", value, message)
        self.told.append((value, message))


PIECES = [1, 2, 7, 1_000_000]


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("::toolcrib progress 0.4 copying", (0.4, "copying")),
        ("::toolcrib progress 40% copying 2 of 5", (0.4, "copying 2 of 5")),
        ("::toolcrib progress 0", (0.0, None)),
        ("::toolcrib progress 1.0", (1.0, None)),
        ("::toolcrib  progress   0.5\ta\tb  \r", (0.5, "a b")),
        ("::toolcrib progress 0.5 \x1b[31mréd\x1b[0m", (0.5, "[31mréd[0m")),
        ("::toolcrib progress 0.5 " + "x" * 500, (0.5, "x" * 500)),
    ],
)
def test_a_line_of_its_own_is_progress_and_not_output(line: str, told: tuple[float, str | None], piece: int) -> None:
    """Value and message are reported, and the rest of the output is kept byte for byte."""
    work = Work(f"before\n{line}\nafter".encode(), piece)
    assert work.told == [told]
    assert work.kept == b"before\nafter"


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize(
    "text",
    [
        "copied ::toolcrib progress 0.4",
        "::toolcrib",
        ":: toolcrib progress 0.4",
        "::toolcribprogress 0.4\n",
        " ::toolcrib progress 0.4\n",
        "::toolcrib progress 0.4 " + "x" * MAX_LINE,
        "::\n::t\n\n::tool",
    ],
)
def test_all_else_is_output(text: str, piece: int) -> None:
    """Only a whole line that begins with the mark, and is not too long, is for toolcrib."""
    work = Work(text.encode(), piece)
    assert (work.told, work.kept) == ([], text.encode())


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("::toolcrib progress 1.5", "progress: 1.5 is not a number from 0 to 1"),
        ("::toolcrib progress -1%", "progress: -0.01 is not a number from 0 to 1"),
        ("::toolcrib progress nan", "progress: nan is not a number from 0 to 1"),
        ("::toolcrib progress half", "progress: 'half' is no number"),
        ("::toolcrib progress", "'progress' is neither 'progress VALUE [MESSAGE]' nor 'percent'"),
        ("::toolcrib finish", "'finish' is neither 'progress VALUE [MESSAGE]' nor 'percent'"),
        ("::toolcrib progress 0.5 " + "x" * 501, "message: 501 characters, the limit is 500"),
    ],
)
def test_a_bad_line_is_kept_with_the_reason(line: str, reason: str, piece: int) -> None:
    """It stops nothing: it stays in the output, and below it stands what is wrong; the next good one counts."""
    work = Work(f"{line}\n::toolcrib progress 0.5\n".encode(), piece)
    assert work.told == [(0.5, None)]
    assert work.kept.decode() == f"{line}\ntoolcrib: {reason}\n"


def test_the_last_line_may_lack_its_end() -> None:
    """What the command prints last, as `printf` does, counts as well."""
    work = Work(b"done\n::toolcrib progress 1")
    assert (work.told, work.kept) == ([(1.0, None)], b"done\n")


def test_without_being_told_percentages_are_output() -> None:
    """A command that draws something else over and over is not misunderstood."""
    work = Work(b"\r10%\r20%")
    assert (work.told, work.kept) == ([], b"\r10%\r20%")


@pytest.mark.parametrize("piece", [1, 3, 5])
@pytest.mark.parametrize(
    ("drawn", "last"),
    [
        (b"\r 10%\r 45.5% 12MB/s", 0.455),
        (b"10% a\r100% b\r", 1.0),
        (b"copy\n\r  7 %\r  8 %\nnext\n", 0.08),
        (b"#####                33.3%\r##########           66.6%\r", 0.666),
    ],
)
def test_told_so_it_reads_percentages_that_are_redrawn(drawn: bytes, last: float, piece: int) -> None:
    """After `::toolcrib percent`, the newest percentage of a line with carriage returns is reported, and kept."""
    work = Work(b"::toolcrib percent\n" + drawn, piece)
    value, message = work.told[-1]
    assert value == pytest.approx(last)
    assert message is None
    assert work.kept == drawn


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("text", [b"45% of all\n", b"45% of all\r\nnext\r\n", b"\r1000%\r", b"\r1.2.3%"])
def test_no_percentage_but_a_redrawn_one_counts(text: bytes, piece: int) -> None:
    """Whole lines, whatever ends them, and what is no percentage, are output only."""
    work = Work(b"::toolcrib percent\n" + text, piece)
    assert (work.told, work.kept) == ([], text)

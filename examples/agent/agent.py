#!/usr/bin/env python3
"""A tiny agent with a command line: takes a goal, says how far it is, keeps a report, and may fail.

It knows nothing of toolcrib but the lines that it prints and the folder for what is to be kept.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path


def look(what: str) -> str:
    """Look at something."""
    return f"there is {what}"


def count(what: str) -> str:
    """Count the letters of something."""
    return f"{what} has {sum(letter.isalpha() for letter in what)} letters"


def wait(how_long: str) -> str:
    """Wait for some seconds, given as a number."""
    time.sleep(float(how_long))
    return f"waited {how_long} s"


SKILLS: dict[str, Callable[[str], str]] = {"look at": look, "count": count, "wait": wait}


def step(text: str) -> str:
    """Do one step of a goal, and return what came of it.

    Raises:
        LookupError: it does not know how.
    """
    for words, skill in SKILLS.items():
        if text.startswith(f"{words} "):
            return skill(text.removeprefix(f"{words} "))
    raise LookupError(f"I do not know how to {text}; I can {', '.join(SKILLS)}")


def main() -> int:
    """Do the steps of the goal one after the other; the exit code is 1 if one cannot be done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--goal", required=True, help="such as: look at the door, then wait 1, then count windows")
    parser.add_argument("--desk", default="nowhere", help="where the agent works")
    options = parser.parse_args()
    report = Path(os.environ.get("TOOLCRIB_ARTIFACTS", ".")) / "report.txt"
    steps = re.split(r",?\s*\bthen\s+", options.goal.strip())
    with report.open("w", encoding="utf-8") as notes:
        for number, text in enumerate(steps):
            print(f"::toolcrib progress {number / len(steps)} {' '.join(text.split())}", flush=True)
            try:
                found = step(text)
            except (LookupError, ValueError) as error:
                print(f"failed at step {number + 1} of {len(steps)}: {error.args[0]}", file=sys.stderr)
                return 1
            print(f"{options.desk}: {found}", flush=True)
            print(found, file=notes)
    return 0


if __name__ == "__main__":
    sys.exit(main())

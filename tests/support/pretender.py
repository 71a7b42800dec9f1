"""A program that does as Chromium does when it starts, for tests that need no browser."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PRETENDER: Final = """#!/bin/sh
for argument; do case "$argument" in --user-data-dir=*) profile=${argument#*=};; esac; done
mkdir "$profile"
printf '%s\\n' "$@" >"$profile/arguments"
printf '%s\\n' "$HOME" "$TOOLCRIB_LEASE_ID" "$(cd "$TMPDIR" && pwd -P)" >"$profile/variables"
printf '4711\\n/devtools/browser/b7' >"$profile/DevToolsActivePort"
sleep 60
"""


def written_pretender(folder: Path) -> str:
    """Return the path of a new program that does as Chromium does when it starts."""
    file = folder / "pretender"
    file.write_text(PRETENDER)
    file.chmod(0o755)
    return str(file)

"""Replays the histories that a run of the tests has kept: `python -m replay.all_that_ran FOLDER`.

A process of its own, so that it can be run under several values of PYTHONHASHSEED.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from support.histories import loaded, replay


async def main(folder: Path) -> None:
    """Replay every history in `folder`; the first that does not replay ends it, with the name of its file."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise SystemExit(f"no histories in {folder}")
    for file in files:
        try:
            await replay([loaded(file.read_text(encoding="utf-8"))])
        except Exception as error:
            error.add_note(f"kept in {file}")
            raise
    print(f"{len(files)} histories replayed under PYTHONHASHSEED={os.environ.get('PYTHONHASHSEED')}")  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
    sys.stdout.flush()
    os._exit(0)  # the SDK's threads may abort an interpreter that ends while they still run

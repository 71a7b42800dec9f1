"""The example of a user's own Temporal workflow, run as a person runs it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from support.lab import Lab, slot, until, until_pool
from support.processes import host_file, toolcrib

EXAMPLE = Path(__file__).parents[2] / "examples" / "workflow"


async def test_the_board_is_flashed_under_a_lease(lab: Lab, tmp_path: Path) -> None:
    """Its steps report progress and keep an artifact; its result is the task's. Cancelled, it stops in between."""
    crib = await lab.pool()
    image = tmp_path / "board.img"
    image.write_bytes(b"image" * 100_000)
    digest = hashlib.sha256(image.read_bytes()).hexdigest()
    file = host_file(tmp_path, "lab-1", [slot("board-1")], runners="workflow: temporal")
    arguments = ("worker", "--role", "host", "--config", str(file), "--plugin", "flash_board")
    async with toolcrib(lab.client, tmp_path, *arguments, cwd=EXAMPLE):
        await until_pool(crib, lambda pool: len(pool.devices) == 1)
        task = await crib.submit(workflow="FlashBoard", inputs={"image": str(image)})
        assert await task.result() == {"board": "board-1", "digest": digest, "said": f"board-1 runs {digest[:8]}"}
        assert (tmp_path / "home" / "artifacts" / task.id / "1" / "boot.log").read_text() == f"booted {digest}\n"
        slow = await crib.submit(workflow="FlashBoard", inputs={"image": str(image), "pause": 1})
        await until(slow, lambda view: view.progress is not None and "bytes" in (view.message or ""))
        await slow.cancel()
        pool = await until_pool(crib, lambda pool: pool.leased == 0)
        assert (await slow.status()).status == "cancelled"
        assert pool.devices[0].state == "idle"

"""Logs and artifacts are read from the host that has them, wherever the reader is, and leave nothing in a history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.lab import Lab, eventually, slot, until_status
from support.processes import toolcrib
from support.runners import PARTING, TALKING, parting
from toolcrib.client import HostUnreachable, TaskHandle, UnknownAttempt, UnknownFile
from toolcrib.scheduling.keeping import Keep
from toolcrib.scheduling.names import host_files_workflow_id
from toolcrib.scheduling.views import AttemptView

TWO_ATTEMPTS = """
echo attempt $TOOLCRIB_ATTEMPT
[ $TOOLCRIB_ATTEMPT = 2 ] || sleep 300
echo end
"""
LOUD = r"""
printf 'a\377\000b\r'; head -c 5000000 /dev/zero | tr '\0' x; echo; echo error >&2
cd "$TOOLCRIB_ARTIFACTS"; mkdir report; printf '\377\000\r\n' > report/result.bin; head -c 600000 /dev/zero > zeros
ln -s /etc/passwd link; exit 3
"""
LOUD_LOG = b"a\xff\x00b\r" + b"x" * 5_000_000 + b"\nerror\n"


async def joined(pieces: AsyncIterator[bytes]) -> bytes:
    """Return all of a log or artifact."""
    return b"".join([piece async for piece in pieces])


class Follower:
    """Follows a task's log beside the test."""

    def __init__(self, task: TaskHandle, number: int | None = None) -> None:
        self.read = b""
        self.attempts: list[int] = []
        self.following = asyncio.create_task(self._follow(task, number))

    async def until(self, text: bytes) -> None:
        """Return as soon as `text` has been read."""
        await eventually(self._so_far, lambda read: text in read)

    async def end(self) -> bytes:
        """Return all that was read, when the log has ended."""
        async with asyncio.timeout(60):
            await self.following
        return self.read

    async def _so_far(self) -> bytes:
        if self.following.done():
            self.following.result()
        return self.read

    async def _follow(self, task: TaskHandle, number: int | None) -> None:
        async for piece in task.logs(number, follow=True, on_attempt=self._begins):
            self.read += piece

    def _begins(self, attempt: AttemptView) -> None:
        self.attempts.append(attempt.number)


async def test_a_log_is_followed_to_its_end(lab: Lab) -> None:
    """From before the first attempt on, through a restart of its host and the next attempt; one attempt alone, too."""
    crib = await lab.pool()
    task = await crib.submit(TWO_ATTEMPTS)
    with pytest.raises(UnknownAttempt, match="has had no attempt"):
        await joined(task.logs())
    whole = Follower(task)
    async with lab.host():
        await whole.until(b"attempt 1\n")
        assert await joined(task.logs()) == b"attempt 1\n"
        first = Follower(task, 1)
    async with lab.host():
        assert await whole.end() == b"attempt 1\nattempt 2\nend\n"
        assert whole.attempts == [1, 2]
        assert await first.end() == await joined(task.logs(1)) == b"attempt 1\n"
        assert await joined(task.logs()) == b"attempt 2\nend\n"
        with pytest.raises(UnknownAttempt, match="no attempt 3, only 1 to 2"):
            await joined(task.logs(3))

        history = await lab.client.get_workflow_handle(host_files_workflow_id("lab-1")).fetch_history()
        assert len(history.events) == 4


async def test_last_words_are_waited_for(lab: Lab) -> None:
    """A cancelled task has ended before its work has: who follows its log gets what that says until it is gone."""
    crib = await lab.pool()
    async with lab.host(goal=PARTING):
        task = await crib.submit("begun")
        await eventually(lambda: joined_or_none(task), lambda read: read == b"begun\n")
        await task.cancel()
        await until_status(task, "cancelled")
        follower = Follower(task)
        await follower.until(b"begun\n")
        parting.may_speak.set_result(None)
        assert await follower.end() == b"begun\nlast words\n"


async def joined_or_none(task: TaskHandle) -> bytes | None:
    """Return all of a task's log, or None while or since there is none."""
    try:
        return await joined(task.logs())
    except (UnknownAttempt, UnknownFile):
        return None


async def run(lab: Lab, folder: Path, *words: str) -> tuple[int | None, bytes]:
    """Run `toolcrib WORDS` in a process that shares nothing with the host; return its exit code and what it wrote."""
    async with toolcrib(lab.client, folder, *words) as process, asyncio.timeout(60):
        await process.wait()
    return process.returncode, (folder / "log").read_bytes()


async def test_logs_and_artifacts_from_another_machine(lab: Lab, tmp_path: Path) -> None:
    """All bytes of 5 MB that are no text arrive, and artifacts as they are; the result lists these."""
    crib = await lab.pool()
    async with lab.host():
        task = await crib.submit(LOUD)
        view = await until_status(task, "failed")
        listed = [{"path": "report/result.bin", "bytes": 4}, {"path": "zeros", "bytes": 600_000}]
        assert view.result["artifacts"] == listed
        assert await run(lab, tmp_path / "1", "logs", task.id) == (0, LOUD_LOG)
        fetched = tmp_path / "zeros"
        assert await run(lab, tmp_path / "2", "artifacts", task.id, "--get", "zeros", "--to", str(fetched)) == (0, b"")
        assert fetched.read_bytes() == bytes(600_000)
        assert await joined(task.artifact("report/result.bin")) == b"\xff\x00\r\n"
        assert [artifact.model_dump() for artifact in await task.artifacts()] == listed
        for path in ("link", "../../../keys/lab-1.pem", "report"):
            with pytest.raises(UnknownFile, match="no artifact"):
                await joined(task.artifact(path))
        async with lab.host("own", [slot(tags=["own"])], goal=TALKING):
            own = await crib.submit("said by a runner", tags=["own"])
            await own.result()
            assert await joined(own.logs()) == b"said by a runner\n"


async def test_what_cannot_be_had(lab: Lab) -> None:
    """A host that is down is named, in seconds; what it deleted since is said to be gone, also to who follows."""
    crib = await lab.pool()
    async with lab.host():
        task = await crib.submit("echo said; touch $TOOLCRIB_ARTIFACTS/a")
        await task.result()
    with pytest.raises(HostUnreachable, match="host lab-1 does not answer"):
        await joined(task.logs())
    async with lab.host(keep=Keep(age=0)):
        await eventually(lambda: joined_or_none(task), lambda found: found is None)
        for call in (joined(task.logs(follow=True)), task.artifacts(), joined(task.artifact("a"))):
            with pytest.raises(UnknownFile):
                await call
        assert list((lab.folder / "here" / "lab-1" / "artifacts").iterdir()) == []

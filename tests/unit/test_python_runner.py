"""The runner `python`: functions in child processes, which carry back what they return or raise."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.guarded import MARK, noting_spawns, running_lab, until
from support.leases import lease_context
from toolcrib.activities.context import InfrastructureFailed, LeaseContext, RunFailed
from toolcrib.activities.progress import ProgressReporter
from toolcrib.activities.runners import load_goal_runner, load_workflow_runner
from toolcrib.activities.runners.python import PythonWorkflows
from toolcrib.scheduling.messages import Progress

MODULE = """
import asyncio, os, signal, subprocess, sys, time
from pathlib import Path

class Checks:
    @staticmethod
    def add(first, second=0): return {"sum": first + second}

def where(): return [os.getcwd(), os.environ["TOOLCRIB_ATTEMPT"], sys.stdin.read() + open("/dev/stdin").read()]
async def later(text): await asyncio.sleep(0.01); return text
def tell(): print("::toolcrib progress 0.5 half"); print("said"); return None
def wrong(): print("so far"); raise KeyError("no such page")
async def wrong_later(): raise ValueError("torn")
def leave(code): sys.exit(code)
def vanish(): os._exit(0)
def die(): print("dying", flush=True); os.kill(os.getpid(), signal.SIGKILL)
def eat():
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29)); return len("x" * (1 << 30))
def not_json(): return {1, 2}
def huge(): return "x" * 2_000_000
def deep():
    value = []
    for _ in range(100_000): value = [value]
    return value
def fork():
    subprocess.Popen(["setsid", "sleep", "300"]); return "left one"
def flood():
    for _ in range(400): sys.stdout.write("y" * 100_000)
    sys.stdout.buffer.write(b"\\xff\\n"); sys.stdout.flush(); os.close(1); os.close(2); return "flooded"
def verdict():
    from toolcrib.activities.context import RunFailed
    raise RunFailed("2 of 7 failed", hint="see the log", code="tests_failed", result={"failed": 2})
def blame():
    from toolcrib.activities.context import InfrastructureFailed
    raise InfrastructureFailed("the relay is stuck")
def clean():
    try: Path("up").touch(); time.sleep(300)
    finally: print("cleaned")
async def clean_later():
    Path("up").touch()
    try: await asyncio.sleep(300)
    except asyncio.CancelledError: print("cleaned"); raise
def deaf():
    signal.signal(signal.SIGTERM, signal.SIG_IGN); Path("up").touch()
    while True: time.sleep(300)
"""


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LeaseContext:
    """The context of a lease, without a guard, on a host that can import `checks`."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "checks.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path / "modules")
    return lease_context(None, tmp_path)  # type: ignore[arg-type]


async def _call(context: LeaseContext, name: str, **inputs: Any) -> Any:
    """Return what becomes of a function; nothing is left of its process."""
    async with running_lab() as lab:
        context.guard = lab.guard
        context.environment |= {MARK: lab.mark, "TOOLCRIB_ATTEMPT": "1"}
        try:
            return await PythonWorkflows().run(f"checks:{name}", inputs, context)
        finally:
            assert lab.left() == []


async def _failed(context: LeaseContext, name: str, **inputs: Any) -> RunFailed:
    with pytest.raises(RunFailed) as caught:
        await _call(context, name, **inputs)
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("name", "inputs", "result"),
    [
        ("Checks.add", {"first": 1, "second": 2}, {"sum": 3}),
        ("Checks.add", {"first": 1}, {"sum": 1}),
        ("later", {"text": 'é\n"x" \0'}, 'é\n"x" \0'),
        pytest.param("later", {"text": "x" * 200_000}, "x" * 200_000, id="200 KB"),
        ("fork", {}, "left one"),
        ("flood", {}, "flooded"),
    ],
)
async def test_what_it_returns_is_the_result(context: LeaseContext, name: str, inputs: Any, result: Any) -> None:
    """Async or not, with its inputs by name, whatever it prints, closes or leaves behind."""
    assert await _call(context, name, **inputs) == result


async def test_it_has_the_lease_and_no_input(context: LeaseContext) -> None:
    """It runs in the lease's folder with the lease's environment, and says how far it is by lines, as a script does."""
    assert await _call(context, "where") == [str(context.folder), "1", ""]
    assert await _call(context, "tell") is None
    assert isinstance(context.reporter, ProgressReporter)
    assert context.reporter.newest == Progress(lease_id="task-1.1.7", value=0.5, message="half")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wrong", "KeyError: 'no such page'"),
        ("wrong_later", "ValueError: torn"),
        ("leave", "the inputs of checks:leave do not fit: missing a required argument: 'code'"),
        ("vanish", "checks:vanish exited with code 0 before it returned"),
        ("die", "checks:die was killed by SIGKILL before it returned"),
        ("eat", "MemoryError: "),
        ("not_json", "the result of checks:not_json is not JSON: Object of type set is not JSON serializable"),
        ("huge", "the result is 2,000,014 bytes long"),
        ("absent", "checks:absent cannot be imported: AttributeError: module 'checks' has no attribute 'absent'"),
        ("MODULE", "checks:MODULE cannot be imported: AttributeError: module 'checks' has no attribute 'MODULE'"),
        ("sys.path", "checks:sys.path cannot be imported: TypeError: it is not a function"),
        ("no function", "'checks:no function' is not package.module:function"),
    ],
)
async def test_how_it_fails(context: LeaseContext, name: str, message: str) -> None:
    """What it raises, how its process ended, or why it could not be called, is the task's error."""
    assert (await _failed(context, name)).message == message


async def test_a_failure_has_what_was_printed(context: LeaseContext) -> None:
    """With the traceback as Python prints it, without what is toolcrib's; an exit is a failure, too."""
    result = (await _failed(context, "wrong")).result
    assert result["exit_code"] == 1
    assert result["output"].startswith("so far\nTraceback (most recent call last):\n")
    assert "python_main" not in result["output"]
    assert (await _failed(context, "leave", code=0)).message == "SystemExit: 0"


async def test_deep_results_are_refused(context: LeaseContext) -> None:
    """One that is nested too deep is the function's mistake, not the end of its process."""
    assert (await _failed(context, "deep")).message.startswith("the result of checks:deep is not JSON: ")


async def test_errors_of_toolcribs_are_carried_back(context: LeaseContext) -> None:
    """`RunFailed` with all it has, and `InfrastructureFailed` as what it is."""
    error = await _failed(context, "verdict")
    assert (error.message, error.hint, error.error_code) == ("2 of 7 failed", "see the log", "tests_failed")
    assert error.result == {"failed": 2}
    with pytest.raises(InfrastructureFailed, match="the relay is stuck"):
        await _call(context, "blame")


@pytest.mark.parametrize(("name", "printed"), [("clean", "cleaned"), ("clean_later", "cleaned"), ("deaf", "")])
async def test_cancelled_it_can_clean_up(
    context: LeaseContext, name: str, printed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception ends it; who does not listen is killed. What it printed is kept."""
    async with running_lab() as lab:
        context.guard, spawned = lab.guard, noting_spawns(lab.guard, monkeypatch)
        context.environment[MARK] = lab.mark
        running = asyncio.create_task(PythonWorkflows().run(f"checks:{name}", {}, context))
        await spawned.wait()
        await until((context.folder / "up").exists)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert lab.left() == []
    assert context.partial_result["output"].partition("\n")[0] == printed


async def test_as_a_goal(context: LeaseContext) -> None:
    """A goal is the function, and behind it its inputs; what is no JSON object is refused."""
    goals = load_goal_runner("python")
    async with running_lab() as lab:
        context.guard = lab.guard
        assert await goals.run('checks:Checks.add {"first": 1, "second": 2}\n', context) == {"sum": 3}
        assert await goals.run(" checks:tell ", context) is None
        for goal, reason in (("checks:tell {", "Expecting property name"), ("checks:tell 5", "it is no object")):
            with pytest.raises(RunFailed, match=f"not JSON with its inputs: {reason}"):
                await goals.run(goal, context)
        with pytest.raises(RunFailed, match="what follows the function is not JSON"):
            await goals.run("rm -rf", context)
    assert isinstance(load_workflow_runner("python"), PythonWorkflows)

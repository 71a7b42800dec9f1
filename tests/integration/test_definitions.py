"""Workflow definitions, run under leases by the runner `definition`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from temporalio.client import WorkflowExecutionStatus

from support.definitions import history_of, put, run_of
from support.histories import STRICT, replay
from support.lab import Lab, slot
from toolcrib.client import TaskFailed, UnknownDefinition
from toolcrib.scheduling.errors import InvalidRequest

SMOKE = """\
name: smoke
version: "1"
inputs:
  file: {type: string, default: /dev/null}
steps:
  - id: fetch
    runner: shell
    run: cat "$FILE"
    env: {FILE: "${{ inputs.file }}"}
    timeout: 30s
    retry: {max_attempts: 3}
  - id: size
    runner: shell
    run: wc -c
    stdin: "${{ steps.fetch.stdout }}"
    when: "${{ steps.fetch.exit_code == 0 }}"
outputs:
  bytes: "${{ steps.size.stdout }}"
"""
X = "${{ inputs.x }}"
HOSTILE = "'; touch pwned; $(touch pwned) `touch pwned` \" ${{ steps.x }}"


async def test_a_definition_runs_as_a_workflow(lab: Lab, tmp_path: Path) -> None:
    """One activity a step, named after it; its outputs are the task's result. Its code passes the SDK's sandbox."""
    (tmp_path / "smoke.yaml").write_text(SMOKE, encoding="utf-8")
    (tmp_path / "page").write_text("hello\n")
    crib = await lab.pool()
    async with lab.host(workflow="definition", definitions=tmp_path):
        task = await crib.submit(workflow="smoke@1", inputs={"file": str(tmp_path / "page")})
        result, history = await task.result(), await history_of(lab.client, task)
        unpinned = await crib.submit(workflow="smoke")
        assert (await unpinned.result())["outputs"] == {"bytes": "0"}
        view, run = await task.status(), await run_of(lab.client, task)
        await replay([history], STRICT)
    assert result["outputs"] == {"bytes": "6"}
    assert [(step["id"], step["outcome"], step["exit_code"], step["attempts"]) for step in result["steps"]] == [
        ("fetch", "done", 0, 1),
        ("size", "done", 0, 1),
    ]
    scheduled = [event for event in history.events if event.HasField("activity_task_scheduled_event_attributes")]
    assert [event.user_metadata.summary.data for event in scheduled] == [b'"fetch"', b'"size"']
    attempts = [event.activity_task_scheduled_event_attributes.retry_policy.maximum_attempts for event in scheduled]
    assert attempts == [3, 1]
    assert (view.progress, run.status, run.workflow_type) == (1.0, WorkflowExecutionStatus.COMPLETED, "DefinitionRun")


async def test_what_cannot_run_fails_by_name(lab: Lab, tmp_path: Path) -> None:
    """Inputs that a definition does not take fail the task before anything runs; a version of none is refused."""
    put(tmp_path, "picky", {"run": f"touch {tmp_path}/ran"}, inputs={"serial": {}})
    crib = await lab.pool()
    async with lab.host(workflow="definition", definitions=tmp_path):
        for inputs, said in (
            ({}, "inputs.serial: picky@1 needs it, a string"),
            ({"serial": "x", "url": "y"}, "inputs.url: picky@1 has no such input; it takes: serial"),
        ):
            task = await crib.submit(workflow="picky", inputs=inputs)
            with pytest.raises(TaskFailed, match=re.escape(said)) as failed:
                await task.result()
            assert failed.value.error_code == "invalid"
        with pytest.raises(UnknownDefinition, match="no host of pool 'lab' has the workflow 'picky@2'"):
            await crib.submit(workflow="picky@2", inputs={"serial": "x"})
    assert not (tmp_path / "ran").exists()


async def test_a_step_is_tried_again(lab: Lab, tmp_path: Path) -> None:
    """One that fails twice and then works is done; its logs are kept, each attempt's in files of its own."""
    script = 'echo "try $TRY" >>"$COUNT"; echo so far; test "$(wc -l <"$COUNT")" -ge 3 || { echo broken >&2; exit 7; }'
    put(tmp_path, "flaky", {"run": script, "env": {"COUNT": str(tmp_path / "count")}, "retry": {"max_attempts": 3}})
    never = {"run": "echo first; echo last; exit 9", "retry": {"max_attempts": 2}}
    put(tmp_path, "never", {"run": "echo"}, never, {"run": f"touch {tmp_path}/after"})
    crib = await lab.pool()
    async with lab.host(workflow="definition", definitions=tmp_path):
        flaky, never_done = await crib.submit(workflow="flaky"), await crib.submit(workflow="never")
        (step,) = (await flaky.result())["steps"]
        with pytest.raises(TaskFailed) as failed:
            await never_done.result()
    assert (step["outcome"], step["attempts"], step["exit_code"]) == ("done", 3, 0)
    (logs,) = (lab.folder / "here").glob(f"**/{flaky.id}*/**/steps")
    assert sorted(file.name for file in logs.iterdir()) == [
        *("s1-1.stderr", "s1-1.stdout", "s1-2.stderr", "s1-2.stdout", "s1-3.stdout"),
    ]
    assert failed.value.message == "step s2 failed: exited with code 9: last"
    assert [entry["outcome"] for entry in failed.value.result["steps"]] == ["done", "failed"]
    assert failed.value.result["steps"][1]["stdout"] == "first\nlast\n"
    assert {"path": "steps/s2-2.stdout", "bytes": 11} in failed.value.result["artifacts"]
    assert not (tmp_path / "after").exists()


async def test_every_runner_gets_values_and_none_runs_them(lab: Lab, tmp_path: Path) -> None:
    """As variable, argument, input, or argument of a function, an input arrives as it is, whatever a shell would do."""
    given = {"X": X}
    put(
        tmp_path,
        "mixed",
        {"id": "shell", "run": 'printf %s "$X"; ls | grep -c pwned >&2; true', "env": given},
        {"id": "exec", "runner": "exec", "run": "printf", "with": {"args": ["%s|%s", X, "${{ inputs.n }}"]}},
        {"id": "stdin", "run": "cat", "stdin": X},
        {
            "id": "python",
            "runner": "python",
            "run": "support.definitions:called",
            "with": {"text": X, "a": "${{ inputs.n }}", "b": "${{ inputs.n }}"},
        },
        {"id": "broken", "runner": "python", "run": "support.definitions:nothing", "continue_on_error": True},
        {"id": "missing", "runner": "exec", "run": "no-such-program", "continue_on_error": True},
        {"id": "skipped", "run": f"touch {tmp_path}/skipped", "when": "${{ steps.missing.outcome == 'done' }}"},
        inputs={"x": {}, "n": {"type": "number"}},
        outputs={name: f"${{{{ steps.{name}.stdout }}}}" for name in ("shell", "exec", "stdin", "python")}
        | {"pwned": "${{ steps.shell.stderr }}", "returned": "${{ steps.python.result }}"},
    )
    crib = await lab.pool()
    async with lab.host(workflow="definition", definitions=tmp_path):
        task = await crib.submit(workflow="mixed", inputs={"x": HOSTILE, "n": 1.5})
        result = await task.result()
    assert result["outputs"] == {
        "shell": HOSTILE,
        "exec": f"{HOSTILE}|1.5",
        "stdin": HOSTILE,
        "python": f"called with {HOSTILE}",
        "pwned": "0",
        "returned": {"text": HOSTILE, "sum": 3.0, "device": "slot-1"},
    }
    outcomes = {step["id"]: step["outcome"] for step in result["steps"]}
    assert outcomes | {"broken": "failed", "missing": "failed", "skipped": "skipped"} == outcomes
    assert not (tmp_path / "skipped").exists()


async def test_five_megabytes_of_output(lab: Lab, tmp_path: Path) -> None:
    """They are whole in the log and as another step's input, cut in the result, and the result says so."""
    print_much = 'for i in $(seq 1000); do printf "%04999d\\n" "$i"; done'
    put(
        tmp_path,
        "much",
        {"run": print_much},
        {"run": "wc -c", "stdin": "${{ steps.s1.stdout }}"},
        {"run": "echo", "env": {"A": "${{ steps.s1.stdout }}"}, "continue_on_error": True},
        {"run": "echo", "when": "${{ steps.s3.outcome == 'failed' }}"},
        outputs={"all": "${{ steps.s1.stdout }}", "size": "${{ steps.s2.stdout }}"},
    )
    crib = await lab.pool()
    async with lab.host(workflow="definition", definitions=tmp_path):
        task = await crib.submit(workflow="much")
        result = await task.result()
    (log,) = (lab.folder / "here").glob(f"**/{task.id}*/**/{result['steps'][0]['logs'][0]}")
    assert log.stat().st_size == 5_000_000
    assert result["outputs"]["size"] == "5000000"
    kept = len(result["outputs"]["all"]) + 1
    assert result["steps"][0]["omitted_stdout_bytes"] == 5_000_000 - kept
    assert kept < 20_000
    assert [step["outcome"] for step in result["steps"]] == ["done", "done", "failed", "done"]


async def test_two_definitions_run_side_by_side(lab: Lab, tmp_path: Path) -> None:
    """On two slots of one host: each waits in a step for what a step of the other does."""
    script = 'touch "$MINE"; until test -e "$THEIRS"; do sleep 0.05; done'
    files = {"MINE": "${{ inputs.mine }}", "THEIRS": "${{ inputs.theirs }}"}
    put(tmp_path, "meets", {"run": script, "env": files}, inputs={"mine": {}, "theirs": {}})
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    crib = await lab.pool()
    async with lab.host(devices=[slot("a"), slot("b")], workflow="definition", definitions=tmp_path):
        tasks = [
            await crib.submit(workflow="meets", inputs={"mine": one, "theirs": two}),
            await crib.submit(workflow="meets", inputs={"mine": two, "theirs": one}),
        ]
        for task in tasks:
            await task.result()


async def test_a_broken_definition_keeps_the_host_from_starting(lab: Lab, tmp_path: Path) -> None:
    """It is named with line and column; so is a host that has the runner and no definitions."""
    await lab.pool()
    (tmp_path / "broken.yaml").write_text("name: x\nsteps: [{id: a, rum: x}]\n", encoding="utf-8")
    with pytest.raises(InvalidRequest, match=rf"{tmp_path}/broken.yaml:2:17: steps\[0\].rum: unknown key"):
        async with lab.host(workflow="definition", definitions=tmp_path):
            pass
    with pytest.raises(InvalidRequest, match="has the runner definition and no definitions"):
        async with lab.host(workflow="definition"):
            pass


async def test_two_hundred_steps(lab: Lab, tmp_path: Path) -> None:
    """Each adds one to what the one before it has printed."""
    first = {"run": "echo 1"}
    more = [
        {"run": 'echo "$((N + 1))"', "env": {"N": f"${{{{ steps.s{number}.stdout }}}}"}} for number in range(1, 200)
    ]
    put(tmp_path, "many", first, *more, outputs={"sum": "${{ steps.s200.stdout }}"})
    crib = await lab.pool()
    async with lab.host(workflow="definition", definitions=tmp_path):
        task = await crib.submit(workflow="many")
        result = await task.result()
    assert result["outputs"] == {"sum": "200"}
    assert len(result["steps"]) == 200

"""A workflow is run where it is: refused if no host has it, and assigned only to devices whose host does."""

from __future__ import annotations

from typing import Any

import pytest

from support.rules import START, device, entry, holders, key_of, pool, pooled, register, settlement
from toolcrib.scheduling.constraints import Constraints
from toolcrib.scheduling.device import DeviceState
from toolcrib.scheduling.enrollment import enroll
from toolcrib.scheduling.errors import InvalidRequest, from_body
from toolcrib.scheduling.messages import HostKey, HostSilent, SettleKind
from toolcrib.scheduling.pool import dump_state, load_state
from toolcrib.scheduling.pool_view import host_views
from toolcrib.scheduling.reasons import pending_reason
from toolcrib.scheduling.references import FUNCTIONS, MAX_REFERENCES
from toolcrib.scheduling.registration import MAX_DEVICES_WEIGHT
from toolcrib.scheduling.scheduler import TaskScheduler

SMOKE = ("smoke@1", "smoke@2", "login")


def lab(**said: tuple[str, ...]) -> TaskScheduler:
    """Return a pool with hosts of one device each, which say that they run so much."""
    scheduler = pool()
    for host_id, workflows in said.items():
        register(scheduler, host_id, [device("d")], workflows={"local": workflows})
    return scheduler


@pytest.mark.parametrize(
    ("offered", "wanted", "runs"),
    [
        (SMOKE, "smoke@1", True),
        (SMOKE, "smoke", True),
        (SMOKE, "login", True),
        (SMOKE, "smoke@3", False),
        (SMOKE, "smok", False),
        (SMOKE, "Smoke", False),
        (SMOKE, "login@1", False),
        ((), "smoke", False),
        (None, "whatever", True),
        ((FUNCTIONS,), "package.module:function", True),
        ((FUNCTIONS,), "smoke", False),
    ],
)
def test_a_version_pins_and_a_name_takes_any(offered: tuple[str, ...] | None, wanted: str, runs: bool) -> None:
    """Names and versions are compared literally; who does not say what it runs may be tried."""
    assert Constraints(workflow=wanted).matches(pooled("d", workflows=offered)) is runs


def test_a_task_gets_a_device_whose_host_has_its_workflow() -> None:
    """Though another one idles that was registered before; goals go anywhere."""
    scheduler = lab(none=(), old=("smoke@1",), new=("smoke@2",))
    scheduler.admit([entry("pinned", workflow="smoke@2"), entry("any", workflow="smoke"), entry("goal")], START)
    assert {task: lease.host_id for lease in scheduler.held for task in [lease.task_id]} == {
        "pinned": "new",
        "any": "old",
        "goal": "none",
    }


def refusal(scheduler: TaskScheduler, wanted: str, task: str = "t", **fields: Any) -> tuple[str, str | None] | None:
    """Return message and hint with which a workflow is refused; None if it is not."""
    (answer,) = scheduler.admit([entry(task, workflow=wanted, **fields)], START)
    if answer.refused is None:
        return None
    error = from_body(answer.refused)
    assert (error.code, error.exit_code, task in scheduler.queue) == ("unknown_definition", 4, False)
    return error.message, error.hint


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ("smok", "Did you mean smoke@1, smoke@2? "),
        ("smoke@3", "Did you mean smoke@1, smoke@2? "),
        ("logon", "Did you mean login? "),
        ("x", ""),
    ],
)
def test_what_no_host_has_is_refused(wanted: str, meant: str) -> None:
    """By name, with what may be meant; nothing is created."""
    assert refusal(lab(h=SMOKE), wanted) == (
        f"no host of pool 'default' has the workflow '{wanted}'",
        f"{meant}See: toolcrib definition list --pool default",
    )


def test_what_is_not_there_for_the_devices_asked_for_is_refused() -> None:
    """Another kind of devices, or another host, has it; where there are no such devices, the task waits for one."""
    scheduler = pool()
    devices = [device("plain"), device("screen", driver_type="browser")]
    register(scheduler, "h", devices, workflows={"local": (), "browser": SMOKE})
    register(scheduler, "other", [device("d")], workflows={"local": ()})

    def message(**demand: str) -> str | None:
        refused = scheduler.refusal(entry("t", workflow="login", **demand))
        return None if refused is None else refused.message

    assert message() is None
    assert message(driver_type="browser") is None
    assert message(driver_type="local") == (
        "no host of pool 'default' has the workflow 'login' for devices of driver type local"
    )
    assert message(host_id="other") == "no host of pool 'default' has the workflow 'login'"
    assert message(driver_type="phone") is None


def test_functions_are_named_by_nobody() -> None:
    """Who runs any function may be meant by no misspelt name, and its hint is not one to type."""
    assert refusal(lab(h=(FUNCTIONS, *SMOKE)), "logon") == (
        "no host of pool 'default' has the workflow 'logon'",
        "Did you mean login? See: toolcrib definition list --pool default",
    )


def test_what_a_host_may_have_is_not_refused() -> None:
    """One that is offline has it, one that does not say or is yet to register may; without hosts nothing is known."""
    scheduler = lab(h=SMOKE)
    scheduler.silence(HostSilent(host_id="h", incarnation=1, reason="gone"), START)
    assert refusal(scheduler, "login") is None
    assert refusal(pool(device("d")), "anything") is None
    assert refusal(pool(), "anything") is None
    enrolled = lab(h=SMOKE)
    enroll(enrolled.records, HostKey(host_id="new", public_key=key_of("new").public), START)
    assert refusal(enrolled, "anything") is None
    register(enrolled, "new", [device("d")], workflows={"local": ()})
    assert refusal(enrolled, "other", task="u") is not None


def test_a_host_that_is_revoked_has_nothing_more() -> None:
    """What only it had is refused from then on; another's is not."""
    scheduler = lab(gone=("smoke@1",), stays=("login",))
    enroll(scheduler.records, HostKey(host_id="gone", public_key=None), START)
    assert refusal(scheduler, "smoke") is not None
    assert refusal(scheduler, "login") is None


def test_who_was_admitted_is_not_refused_later() -> None:
    """A host comes back without a definition: the task that waits for it, and one that returns, wait on."""
    scheduler = lab(h=SMOKE)
    scheduler.admit([entry("t", workflow="smoke")], START)
    (lease,) = scheduler.held
    register(scheduler, "h", [device("d")], workflows={"local": ("login",)})
    scheduler.settle([settlement(SettleKind.REQUEUE, lease, entry("t", workflow="smoke"))], START)
    assert "t" in scheduler.queue
    assert refusal(scheduler, "smoke", known=True) is None
    register(scheduler, "h", [device("d")], workflows={"local": SMOKE})
    assert holders(scheduler) == {"t": "d"}


def test_the_kind_of_device_counts() -> None:
    """A host may run other workflows on devices of another driver type, and none on others."""
    scheduler = pool()
    devices = [device("plain"), device("screen", driver_type="browser")]
    register(scheduler, "h", devices, workflows={"local": (), "browser": SMOKE})
    scheduler.admit([entry("t", workflow="login")], START)
    assert holders(scheduler) == {"t": "screen"}
    assert [view.workflows for view in host_views(scheduler.state)] == [list(SMOKE)]


def test_what_hosts_run_is_kept_once_and_carried_over() -> None:
    """The next run of the pool knows it; a device's is its host's, and takes no room of its own."""
    scheduler = pool()
    register(scheduler, "h", [device(f"d{n}") for n in range(50)], workflows={"local": SMOKE})
    state = load_state(dump_state(scheduler.state))
    assert state == scheduler.state
    assert state.devices["h/d49"].workflows == SMOKE


@pytest.mark.parametrize(
    "said", [("a b",), ("a@",), ("@1",), tuple(f"w{n}" for n in range(MAX_REFERENCES + 1)), ("é",)]
)
def test_a_host_that_says_nonsense_is_refused(said: tuple[str, ...]) -> None:
    """Nothing gets into the state that could not be asked for, or is too much."""
    with pytest.raises(InvalidRequest, match="workflows of host h: "):
        lab(h=said)


def test_what_hosts_run_counts_towards_the_room_of_devices() -> None:
    """A pool's state has to fit into one payload."""
    long = tuple(f"{'w' * 190}{n}" for n in range(MAX_REFERENCES))
    with pytest.raises(InvalidRequest, match="bytes of devices"):
        lab(**{f"h{n}": long for n in range(2 + MAX_DEVICES_WEIGHT // (190 * MAX_REFERENCES))})


@pytest.mark.parametrize(
    ("states", "workflow", "code", "text"),
    [
        ("iL", "smoke", "all_busy", "the one device that fits is busy; only h1 can run smoke"),
        ("iO", "smoke@1", "offline", "the one device that fits is offline; only h1 can run smoke@1"),
        ("LL", "smok", "no_such_device", "no host has the workflow smok; did you mean smoke@1, smoke@2?"),
        ("LL", "other", "no_such_device", "no host has the workflow other"),
    ],
)
def test_a_task_that_waits_says_who_has_its_workflow(states: str, workflow: str, code: str, text: str) -> None:
    """If others would do but for that."""
    kinds = {"i": DeviceState.IDLE, "L": DeviceState.LEASED, "O": DeviceState.OFFLINE}
    devices = [
        pooled("d", host_id=f"h{n}", state=kinds[state], workflows=SMOKE if n else ()) for n, state in enumerate(states)
    ]
    reason = pending_reason(Constraints(workflow=workflow), devices, lambda one: one.state, below_cap=True)
    assert (reason.code, reason.text) == (code, text)

"""Who said it: what is signed is good for one thing, once, and by one host."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter

from support.rules import START, assigned, claim, device, dispatched, entry, key_of, lease, pool, report, snapshot, task
from toolcrib.scheduling.enrollment import check_enrollment, enroll
from toolcrib.scheduling.errors import (
    BadSignature,
    HostSuperseded,
    InvalidRequest,
    NotEnrolled,
    ToolcribError,
    UnknownDevice,
)
from toolcrib.scheduling.messages import Claim, HostKey, HostRestarted, HostSnapshot, Report, ReportOutcome
from toolcrib.scheduling.signatures import (
    checked_public_key,
    claim_statement,
    is_signed,
    registration_statement,
    report_statement,
)

HELD = lease(incarnation=3)
CLAIM = claim(HELD)
REPORT = report(HELD, ReportOutcome.DONE, {"exit_code": 0})
SNAPSHOT = snapshot("h", [device("d", "a")])
KEY = key_of("h").public


@pytest.mark.parametrize(
    "changes",
    [
        {"lease_id": lease(2).id},
        {"host_id": "other"},
        {"claim_id": "c2"},
        {"incarnation": 4},
        {"machine": "another"},
    ],
    ids=str,
)
def test_a_claim_is_signed_with_all_that_it_says(changes: dict[str, Any]) -> None:
    """Nothing of it can be changed by who does not have the key."""
    assert is_signed(claim_statement(CLAIM), CLAIM.signature, KEY)
    assert not is_signed(claim_statement(replace(CLAIM, **changes)), CLAIM.signature, KEY)


@pytest.mark.parametrize(
    "changes",
    [
        {"lease_id": lease(2).id},
        {"outcome": ReportOutcome.FAILED},
        {"result": {"exit_code": 1}},
        {"result": None},
        {"dirty": "it burns"},
        {"claim_id": "c2"},
        {"incarnation": 4},
    ],
    ids=str,
)
def test_a_report_is_signed_with_all_that_it_says(changes: dict[str, Any]) -> None:
    """Nothing of it can be changed, and no other host can have said it."""
    assert is_signed(report_statement(REPORT, "h"), REPORT.signature, KEY)
    assert not is_signed(report_statement(replace(REPORT, **changes), "h"), REPORT.signature, KEY)
    assert not is_signed(report_statement(REPORT, "other"), REPORT.signature, KEY)


@pytest.mark.parametrize(
    "changes",
    [
        {"host_id": "other"},
        {"instance": "two"},
        {"serial": 2},
        {"incarnation": 1},
        {"machine": "another"},
        {"devices": ()},
        {"devices": (device("d", "b"),)},
    ],
    ids=str,
)
def test_a_registration_is_signed_with_all_that_it_says(changes: dict[str, Any]) -> None:
    """Nothing of it can be changed, and it is for one pool."""
    assert is_signed(registration_statement(SNAPSHOT, "default"), SNAPSHOT.signature, KEY)
    assert not is_signed(registration_statement(replace(SNAPSHOT, **changes), "default"), SNAPSHOT.signature, KEY)
    assert not is_signed(registration_statement(SNAPSHOT, "other"), SNAPSHOT.signature, KEY)


def test_no_signature_is_good_for_another_purpose() -> None:
    """A claim's is not a report's, nor a registration's."""
    signatures = [CLAIM.signature, REPORT.signature, SNAPSHOT.signature]
    statements = [claim_statement(CLAIM), report_statement(REPORT, "h"), registration_statement(SNAPSHOT, "default")]
    good = [[is_signed(statement, signature, KEY) for signature in signatures] for statement in statements]
    assert good == [[True, False, False], [False, True, False], [False, False, True]]


@pytest.mark.parametrize("signature", ["", "A" * 88, "not base64", "\u00e9", "\ud800", REPORT.signature[:-4]])
def test_what_is_malformed_is_no_signature(signature: str) -> None:
    """Nor is anything under what is no key; that is no error of the program."""
    assert not is_signed(report_statement(REPORT, "h"), signature, KEY)
    assert not is_signed(report_statement(REPORT, "h"), REPORT.signature, signature)


@pytest.mark.parametrize("key", ["", "abc", KEY + "=", KEY[:-4], "\ud800", "ssh-ed25519 AAAA", KEY + KEY])
def test_a_malformed_public_key_is_refused(key: str) -> None:
    """With what it should be; a well-formed one is kept as it is."""
    assert checked_public_key(KEY) == KEY
    with pytest.raises(InvalidRequest, match=r"^public_key: .* 32 bytes") as caught:
        checked_public_key(key)
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("sign", [0, 0x80])
@pytest.mark.parametrize(
    "y",
    [
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    ],
)
def test_a_key_of_low_order_is_refused(y: str, sign: int) -> None:
    """Such a key is nobody's: whoever likes finds signatures that are good under it."""
    raw = bytearray.fromhex(y)
    raw[-1] |= sign
    with pytest.raises(InvalidRequest, match=r"^public_key: .*anybody can sign for"):
        checked_public_key(b64encode(raw).decode())


def test_a_key_of_low_order_has_one_signature_for_all() -> None:
    """This is why: the neutral point with the neutral point and zero, whatever is said."""
    neutral = bytes([1, *bytes(31)])
    signature = b64encode(neutral + bytes(32)).decode()
    assert is_signed(b"this", signature, b64encode(neutral).decode())
    assert is_signed(b"and that", signature, b64encode(neutral).decode())


# ---- tasks


@pytest.mark.parametrize(
    "forged",
    [
        replace(CLAIM, signature=""),
        replace(CLAIM, signature=key_of("other").claim(HELD.id, "c1", 3, "m").signature),
        replace(CLAIM, claim_id="c2"),
        replace(CLAIM, signature=REPORT.signature),
    ],
    ids=["unsigned", "of another host", "of another claim", "of a report"],
)
def test_s1_43_a_claim_without_the_host_s_signature_is_refused(forged: Claim) -> None:
    """And changes nothing: the host's own succeeds afterwards."""
    record = task()
    record.offer(HELD, START)
    with pytest.raises(BadSignature):
        record.claim(forged, START)
    assert record.claim(CLAIM, START).goal == "echo"


@pytest.mark.parametrize("result", [None, {"a": [1, 2.5, "\u00e9", True, None]}])
def test_a_forged_report_ends_no_task(result: Any) -> None:
    """It costs an attempt, with the reason on record; its result is dropped."""
    record = task()
    held = dispatched(record)
    record.report(replace(report(held, ReportOutcome.DONE, result), signature=""), START)
    (attempt,) = record.attempts
    assert (attempt.outcome, attempt.reason) == ("refused", "its report is not signed with the key of host h")
    assert (record.status, record.result) == ("queued", None)


def test_a_host_without_a_key_can_claim_nothing() -> None:
    """A lease from before its host was enrolled is nobody's."""
    record = task()
    keyless = replace(lease(), host_key="")
    record.offer(keyless, START)
    with pytest.raises(BadSignature):
        record.claim(claim(keyless), START)


def test_an_older_worker_claims_nothing() -> None:
    """Neither a lease that was granted to a newer one, nor one that a newer one has been announced for."""
    record = task()
    record.offer(HELD, START)
    with pytest.raises(HostSuperseded, match="incarnation 3, not 2"):
        record.claim(claim(HELD, incarnation=2), START)
    record.host_restarted(HostRestarted(host_id="h", incarnation=4, machine="m"), START)
    with pytest.raises(HostSuperseded):
        record.claim(CLAIM, START)
    assert record.status == "assigned"
    record.claim(claim(HELD, incarnation=4), START)


@pytest.mark.parametrize(("machine", "lingers"), [("m", False), ("another", True)])
def test_a_new_worker_ends_what_an_older_one_had_claimed(machine: str, lingers: bool) -> None:
    """At once where one lock keeps the two apart; else the older one may be at work until its lease would lapse."""
    record = task()
    dispatched(record)
    record.host_restarted(HostRestarted(host_id="h", incarnation=1, machine=machine), START)
    (attempt,) = record.attempts
    assert (attempt.outcome, attempt.lingers) == ("expired", lingers)
    assert attempt.reason == (
        "another machine took its host's place" if lingers else "its host's worker was started anew"
    )


def test_the_news_of_a_worker_ends_nothing_that_it_has_claimed_itself() -> None:
    """A new worker may find a lease of its predecessor's in its queue, and claim it before the task hears of it."""
    record = task()
    record.offer(HELD, START)
    record.claim(claim(HELD, incarnation=4), START)
    record.host_restarted(HostRestarted(host_id="h", incarnation=4, machine="m"), START)
    assert record.status == "dispatched"
    record.host_restarted(HostRestarted(host_id="h", incarnation=5, machine="m"), START)
    assert record.attempts[0].outcome == "expired"


# ---- what is on record


def test_s1_61_the_same_report_again_is_on_record() -> None:
    """Whoever asks hears that all is well; another one is a conflict, and changes nothing."""
    record = task()
    held = dispatched(record)
    said = report(held, ReportOutcome.DONE, 1)
    assert record.on_record(said) is None
    record.report(said, START)
    assert record.on_record(said) is None
    conflict = record.on_record(report(held, ReportOutcome.DONE, 2))
    assert conflict is not None
    assert conflict.code == "report_conflict"
    assert record.result == 1


def test_s1_64_a_report_of_an_older_lease_is_superseded() -> None:
    """So it is for a lease that nobody knows."""
    record = task()
    first = dispatched(record)
    record.expire("the host stopped renewing it", START)
    assert code(record.on_record(report(first, ReportOutcome.DONE))) == "lease_expired"
    assigned(record)
    assert code(record.on_record(report(first, ReportOutcome.DONE))) == "lease_superseded"
    assert code(record.on_record(report(lease(9), ReportOutcome.DONE))) == "lease_superseded"


def test_a_report_after_a_cancel_is_refused_by_that_name() -> None:
    """The task has ended."""
    record = task()
    held = dispatched(record)
    record.cancel(START)
    assert code(record.on_record(report(held, ReportOutcome.DONE))) == "task_ended"


def code(error: Any) -> str | None:
    """Return an error's code."""
    return None if error is None else str(error.code)


# ---- pools


def refused(scheduler: Any, said: HostSnapshot, error: type[ToolcribError]) -> None:
    """Have a registration refused, which is to change nothing."""
    before = repr(scheduler.state)
    with pytest.raises(error):
        scheduler.register(said, START)
    assert repr(scheduler.state) == before


def test_only_a_host_that_is_enrolled_registers() -> None:
    """Under the key that it was enrolled with, with each registration once."""
    scheduler = pool()
    refused(scheduler, SNAPSHOT, NotEnrolled)
    enroll(scheduler.records, HostKey(host_id="h", public_key=KEY), START)
    refused(scheduler, key_of("other").signed_snapshot(SNAPSHOT, "default"), BadSignature)
    refused(scheduler, key_of("h").signed_snapshot(SNAPSHOT, "another pool"), BadSignature)
    assert scheduler.register(SNAPSHOT, START).incarnation == 1
    assert scheduler.register(SNAPSHOT, START).incarnation == 1
    assert scheduler.register(snapshot("h", [], "two", serial=2), START).incarnation == 2
    refused(scheduler, SNAPSHOT, HostSuperseded)


def test_a_registration_that_is_repeated_does_not_bring_a_silent_host_back() -> None:
    """Who has read it in a history could send it."""
    scheduler = pool(device("d"))
    host = scheduler.records.hosts["h"]
    host.state = "offline"
    scheduler.register(snapshot("h", [device("d")]), START)
    assert host.state == "offline"


def test_a_key_is_replaced_only_after_it_was_revoked() -> None:
    """What is enrolled already is no error; a revoked host's devices are offline."""
    scheduler = pool(device("d"))
    state = scheduler.records
    enroll(state, HostKey(host_id="h", public_key=KEY), START)
    other = HostKey(host_id="h", public_key=key_of("other").public)
    with pytest.raises(InvalidRequest, match="enrolled with another key"):
        check_enrollment(state, other)
    enroll(state, HostKey(host_id="h", public_key=None), START)
    assert [(each.state, each.reason) for each in scheduler.devices] == [("offline", "its key was revoked")]
    refused(scheduler, snapshot("h", [device("d")], serial=2), NotEnrolled)
    enroll(state, other, START)
    with pytest.raises(UnknownDevice):
        enroll(state, HostKey(host_id="nobody", public_key=None), START)


def test_a_lease_carries_the_key_and_incarnation_of_its_host() -> None:
    """That is how its task knows whom to believe."""
    scheduler = pool(device("d"))
    scheduler.admit([entry("t")], START)
    (held,) = scheduler.held
    assert (held.host_key, held.incarnation) == (KEY, 1)


def test_a_signed_report_arrives_as_it_was_signed() -> None:
    """Whatever JSON a result is, its digest is the same at the other end."""
    adapter = TypeAdapter(Report)
    for result in (1e16, 0.1, -0.0, 2**70, "\u2028", {"b": 1, "a": [{}]}, [None, True]):
        said = report(HELD, ReportOutcome.DONE, result)
        arrived = adapter.validate_json(adapter.dump_json(said))
        assert is_signed(report_statement(arrived, "h"), arrived.signature, KEY), result


def test_an_old_registration_is_not_good_for_a_pool_that_was_rebuilt() -> None:
    """Its host is enrolled there anew, with a serial number above all earlier ones."""
    rebuilt = pool()
    enroll(rebuilt.records, HostKey(host_id="h", public_key=KEY), START + 3600)
    refused(rebuilt, SNAPSHOT, HostSuperseded)

"""A pool and its tasks, with a post between them that is late, repeats itself and keeps no order.

Whatever it does: no device has two users, and when all has arrived, every task has ended and every device is free.
"""

from __future__ import annotations

from typing import Literal

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from support.rules import START, claim, device, pool, register, report
from toolcrib.scheduling.device import DeviceState
from toolcrib.scheduling.lease import Attempt, Lease
from toolcrib.scheduling.messages import (
    Admission,
    AskedAfter,
    DeviceOrder,
    HostRestarted,
    QueueEntry,
    ReportOutcome,
    Settlement,
)
from toolcrib.scheduling.request import TaskRequest
from toolcrib.scheduling.task import Offer, TaskRecord

ANY = st.integers(0, 9)
RARELY = st.integers(0, 4).map(lambda n: n == 0)
ROUNDS_TO_THE_END = 60


class WorldMachine(RuleBasedStateMachine):
    """Two devices, a few tasks, and what is on its way between them and their pool."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.pool = pool(device("d1"), device("d2", "a"), claim_timeout=30)
        self.workers = 0
        self.tasks: dict[str, TaskRecord] = {}
        self.to_pool: list[QueueEntry | Settlement] = []
        self.to_tasks: list[Admission | Lease] = []

    # ---- what people, hosts and the clock do

    @precondition(lambda self: len(self.tasks) < 6)
    @rule(tagged=st.booleans(), max_attempts=st.integers(1, 3))
    def submit(self, tagged: bool, max_attempts: int) -> None:
        request = TaskRequest(goal="echo", tags=("a",) if tagged else (), max_attempts=max_attempts)
        record = TaskRecord(f"t{len(self.tasks)}", request, self.now)
        self.tasks[record.task_id] = record
        self.to_pool.append(record.entry(known=False))

    @rule(n=ANY, confirmed=st.booleans())
    def cancel(self, n: int, confirmed: bool) -> None:
        if n < len(self.tasks):
            self._cancel(self.tasks[f"t{n}"], confirmed)

    @rule(n=ANY)
    def reset(self, n: int) -> None:
        if n < len(self.tasks):
            record = self.tasks[f"t{n}"]
            record.distrust(self.now)
            record.begin_anew(self.now)
            self.to_pool.append(record.resetting())

    @precondition(lambda self: self.open_attempts)
    @rule(n=ANY, outcome=st.sampled_from(ReportOutcome), expires=RARELY)
    def run(self, n: int, outcome: ReportOutcome, expires: bool) -> None:
        record, attempt = self.open_attempts[n % len(self.open_attempts)]
        if expires:
            record.expire("the host stopped renewing it", self.now)
            self.to_pool.append(record.settlement())
        else:
            self._run(record, attempt, outcome)

    @rule(machine=st.sampled_from(["m", "another"]), heard=st.booleans())
    def start_the_host_anew(self, machine: str, heard: bool) -> None:
        """Its tasks may hear of it; who does not finds out when the lease lapses."""
        self.workers += 1
        found = register(self.pool, "h", [device("d1"), device("d2", "a")], self.now, f"worker-{self.workers}")
        news = HostRestarted(host_id="h", incarnation=found.incarnation, machine=machine)
        for task_id in self.pool.holders_before("h", found.incarnation) if heard else ():
            record, attempt = self.tasks[task_id], self.tasks[task_id].attempt
            record.host_restarted(news, self.now)
            if attempt is not None and not attempt.open:
                self.to_pool.append(record.settlement())

    @rule(n=st.integers(0, 1), kind=st.sampled_from(["drain", "resume", "quarantine"]))
    def look_after_a_device(self, n: int, kind: Literal["drain", "resume", "quarantine"]) -> None:
        self.pool.order(DeviceOrder(key=("h/d1", "h/d2")[n], kind=kind, reason="its cable is loose"), self.now)

    @rule(n=ANY)
    def ask_again_for_a_place(self, n: int) -> None:
        record = self.tasks.get(f"t{n}")
        if record is not None and record.attempt is None and not record.ended:
            self.to_pool.append(record.entry(known=True))

    @rule(seconds=st.sampled_from([0.0, 1.0, 31.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    # ---- what the post does

    @precondition(lambda self: self.to_pool)
    @rule(n=ANY, comes_again=RARELY)
    def reach_the_pool(self, n: int, comes_again: bool) -> None:
        message = self.to_pool[n % len(self.to_pool)]
        if not comes_again:
            self.to_pool.remove(message)
        if isinstance(message, Settlement):
            self.pool.settle([message], self.now)
        else:
            self.to_tasks += self.pool.admit([message], self.now)

    @precondition(lambda self: self.to_tasks)
    @rule(n=ANY, comes_again=RARELY)
    def reach_a_task(self, n: int, comes_again: bool) -> None:
        message = self.to_tasks[n % len(self.to_tasks)]
        if not comes_again:
            self.to_tasks.remove(message)
        record = self.tasks[message.task_id]
        lease = message if isinstance(message, Lease) else message.lease
        if isinstance(message, Lease):
            answer: Offer | None = record.offer(message, self.now)
        else:
            answer = record.admitted(message, self.now)
        if answer is Offer.UNWANTED and lease is not None:
            self.to_pool.append(record.turning_down(lease))

    @rule()
    def post_grants(self) -> None:
        grants = self.pool.undelivered
        self.to_tasks += grants
        self.pool.delivered(grants)

    @rule()
    def repair(self) -> None:
        gone = tuple(task_id for task_id in self.pool.members if self.tasks[task_id].ended)
        self.pool.asked_after(AskedAfter(gone=gone), self.now, self.now)

    # ---- what always holds

    @property
    def open_attempts(self) -> list[tuple[TaskRecord, Attempt]]:
        """The attempts that may use their device now."""
        return [(record, record.attempt) for record in self.tasks.values() if record.attempt is not None]

    @invariant()
    def no_device_has_two_users(self) -> None:
        """The device of an attempt that is open is leased to it in the pool, and so to nobody else."""
        used = [attempt.lease for _, attempt in self.open_attempts]
        assert all(lease in self.pool.held for lease in used)
        assert len({lease.device_key for lease in used}) == len(used)

    def teardown(self) -> None:
        """In the end every message arrives, tasks speak up again, devices are mended, and nothing is left over.

        A task that waits asks again for its place after ten minutes; here, every round takes that long.
        """
        for _ in range(ROUNDS_TO_THE_END):
            if self._all_done():
                break
            self._round()
        for n in (0, 1):
            self.look_after_a_device(n, "resume")
        assert self._all_done()
        assert not self.pool.held
        assert not self.pool.busy
        assert all(each.state is DeviceState.IDLE for each in self.pool.devices)

    # ---- how it is done

    def _round(self) -> None:
        while self.to_pool or self.to_tasks or self.pool.undelivered:
            self.post_grants()
            for _ in list(self.to_pool):
                self.reach_the_pool(0, comes_again=False)
            for _ in list(self.to_tasks):
                self.reach_a_task(0, comes_again=False)
        for record, attempt in self.open_attempts:
            self._run(record, attempt, ReportOutcome.DONE)
        self.now += 700
        for n in (0, 1):
            self.look_after_a_device(n, "resume")
        for n in range(len(self.tasks)):
            self.ask_again_for_a_place(n)
        self.repair()

    def _all_done(self) -> bool:
        messages = self.to_pool or self.to_tasks or self.pool.undelivered
        return not messages and not self.pool.busy and all(record.ended for record in self.tasks.values())

    def _run(self, record: TaskRecord, attempt: Attempt, outcome: ReportOutcome) -> None:
        if self.now <= attempt.lease.claim_by:
            record.claim(claim(attempt.lease, incarnation=attempt.least_incarnation), self.now)
            record.report(report(attempt.lease, outcome), self.now)
        else:
            record.expire("it was not claimed in time", self.now)
        self.to_pool.append(record.settlement())

    def _cancel(self, record: TaskRecord, confirmed: bool) -> None:
        if not record.ended:
            record.cancel(self.now)
            self.to_pool.append(record.withdrawal(confirmed=confirmed))


TestWorld = WorldMachine.TestCase

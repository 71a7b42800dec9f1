"""What a host says of one lease, in words that only it can say."""

from __future__ import annotations

import uuid
from dataclasses import replace

from toolcrib.activities.host_keys import HostKeyPair
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import Claim, Report


class LeaseProof:
    """One lease's claim, and the reports that belong to it, signed with the key of its host."""

    def __init__(self, key: HostKeyPair, lease: Lease, machine: str) -> None:
        self._key = key
        self._lease = lease
        self._machine = machine
        self._claim_id = uuid.uuid4().hex
        self._incarnation = 0

    def claim(self, incarnation: int) -> Claim:
        """Return the claim, to be sent any number of times: it gets the same answer again."""
        self._incarnation = incarnation
        return self._key.claim(self._lease.id, self._claim_id, incarnation, self._machine)

    def sign(self, report: Report) -> Report:
        """Return `report` as one that belongs to the claim."""
        return self._key.signed_report(replace(report, claim_id=self._claim_id, incarnation=self._incarnation))

"""What a host says of one lease, in words that only it can say."""

from __future__ import annotations

import uuid
from dataclasses import replace

from toolcrib.activities.host_keys import HostKeyPair
from toolcrib.scheduling.lease import Lease
from toolcrib.scheduling.messages import Claim, Report


class LeaseProof:
    """One lease's claim, and the reports that belong to it, signed with the key of its host."""

    def __init__(self, key: HostKeyPair, lease: Lease, incarnation: int, machine: str) -> None:
        self._key = key
        self._incarnation = incarnation
        self.claim: Claim = key.claim(lease.id, uuid.uuid4().hex, incarnation, machine)
        """To be sent any number of times: it gets the same answer again."""

    def sign(self, report: Report) -> Report:
        """Return `report` as one that belongs to the claim."""
        return self._key.signed_report(replace(report, claim_id=self.claim.claim_id, incarnation=self._incarnation))

"""Sizes of all that a sum by two operators sends and keeps, which follow from its parameters.

One place says them: operators check what arrives against them, and proposals state them.
"""

from __future__ import annotations

from typing import NamedTuple

from earshot_protocol.prio3.field import ENCODED_BYTES
from earshot_protocol.prio3.prio3 import Prio3
from earshot_protocol.remembering import remembered
from earshot_protocol.secure_sum.encoding import packed_bytes
from earshot_protocol.two_operators.messages import (
    ID_BYTES,
    SEALED_BYTES,
    SEALED_PROVED_BYTES,
    AddUp,
    HelperTotal,
    PhoneReport,
)
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.wire import encode, lengthened

_ZEROS = {"sum_id": bytes(16), "offer": bytes(32), "signature": bytes(64)}


class Sizes(NamedTuple):
    """Sizes in bytes of the parts of a sum's messages.

    Attributes:
        sealed: What a phone seals to the helper.
        share: Share of the leader.
        public: Public share of a proved input; 0 otherwise.
        verifier: Verifier share of either operator for a proved input; 0 otherwise.
        total: The helper's sum of shares.
    """

    sealed: int
    share: int
    public: int
    verifier: int
    total: int

    @property
    def entry(self) -> tuple[int, ...]:
        """Parts of a report's entry in the list (`lists.ListEntry`)."""
        return ID_BYTES, self.sealed, self.public, self.verifier


@remembered(64)  # all phones of a simulation ask for the same
def sizes(parameters: TwoOperatorParameters) -> Sizes:
    """Return the sizes under parameters that pass their check."""
    if parameters.proof is None:
        packed = packed_bytes(parameters)
        return Sizes(SEALED_BYTES, packed, 0, 0, packed)
    proof = Prio3(parameters.proof, parameters.length)
    return Sizes(
        sealed=SEALED_PROVED_BYTES,
        share=proof.leader_share_bytes,
        public=proof.public_share_bytes,
        verifier=proof.verifier_share_bytes,
        total=ENCODED_BYTES * parameters.length,
    )


def report_bytes(parameters: TwoOperatorParameters) -> int:
    """Return the size of the encoded report of the last phone; none is larger."""
    each = sizes(parameters)
    report = PhoneReport(
        sum_id=bytes(16),
        sender=parameters.phones - 1,
        report_id=bytes(ID_BYTES),
        sealed=bytes(each.sealed),
        share=b"",
        public=bytes(each.public),
    )
    return lengthened(len(encode(report)), each.share)


def list_bytes(parameters: TwoOperatorParameters) -> int:
    """Return the size of the list if every phone reports."""
    return parameters.phones * sum(sizes(parameters).entry)


def asked_bytes(parameters: TwoOperatorParameters) -> int:
    """Return the size of the encoded request for a total if every phone reports."""
    return lengthened(len(encode(AddUp(**_ZEROS, reports=b""))), list_bytes(parameters))


def total_bytes(parameters: TwoOperatorParameters) -> int:
    """Return the size of the largest encoded total: every phone reports.

    If inputs are proved, none of them is refused, as a verifier share is longer than the name of a
    refused report; otherwise as many as may be.
    """
    each = sizes(parameters)
    refused = 0 if each.verifier else (parameters.phones - parameters.least) * ID_BYTES
    empty = HelperTotal(**_ZEROS, reports=bytes(32), refused=b"", total=b"")
    size = len(encode(empty))
    for part in (refused, each.total, parameters.phones * each.verifier):
        size = lengthened(size, part)
    return size

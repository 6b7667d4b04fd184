"""The leader's half of a sum: its list of reports, and the sum of its shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import MalformedMessageError, RemoteError
from earshot_protocol.overriding import override
from earshot_protocol.prio3 import field
from earshot_protocol.prio3.derivation import Party
from earshot_protocol.prio3.field import Arithmetic
from earshot_protocol.prio3.prio3 import Received
from earshot_protocol.secure_sum import encoding
from earshot_protocol.secure_sum.masks import word_type
from earshot_protocol.two_operators.messages import HelperTotal, Offer, PhoneReport
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.proofs import proof_of
from earshot_protocol.two_operators.sizes import sizes

Totals = npt.NDArray[np.int64]


class Half(Protocol):
    """The leader's half of a sum, for some reports at a time."""

    def listed(self, reports: Sequence[PhoneReport]) -> list[bytes]:
        """Return the entry of each report in the list; empty bytes for one that is not listed."""

    def check_share(self, share: bytes) -> None:
        """Refuse a leader's share of a wrong size.

        Raises:
            MalformedMessageError: The size is wrong.
        """

    def check(self, answer: HelperTotal) -> None:
        """Refuse a helper's total of a wrong size.

        Raises:
            MalformedMessageError: The size is wrong.
        """

    def add(self, reports: Sequence[PhoneReport], ours: bytes, theirs: bytes) -> bool:
        """Add the shares of reports that count.

        Args:
            reports: The reports.
            ours: The leader's verifier shares of them, as they were listed, where inputs are
                proved.
            theirs: The helper's, one of each.

        Returns:
            Whether both operators accept all of them.
        """

    def total(self, answer: HelperTotal, noise: Totals) -> Totals:
        """Return the sum of both halves and this operator's noise, int64 (length,)."""


class PlainHalf(Half):
    """Half of a sum whose inputs are not proved.

    Args:
        parameters: Parameters of the sum.
    """

    verifier_bytes = 0

    def __init__(self, parameters: TwoOperatorParameters) -> None:
        self._parameters = parameters
        self._sum = np.zeros(parameters.length, dtype=word_type(parameters.modulus_bits))

    @override
    def listed(self, reports: Sequence[PhoneReport]) -> list[bytes]:
        return [each.report_id + each.sealed for each in reports]

    @override
    def check_share(self, share: bytes) -> None:
        encoding.check_packed(share, self._parameters)

    @override
    def check(self, answer: HelperTotal) -> None:
        encoding.check_packed(answer.total, self._parameters)

    @override
    def add(self, reports: Sequence[PhoneReport], ours: bytes, theirs: bytes) -> bool:
        encoding.add_packed(self._sum, [each.share for each in reports], self._parameters)
        return True

    @override
    def total(self, answer: HelperTotal, noise: Totals) -> Totals:
        words = self._sum + encoding.unpack(answer.total, self._parameters)
        words += noise.astype(words.dtype)
        return encoding.decode(words, self._parameters).reshape(-1).astype(np.int64)


class ProvedHalf(Half):
    """Half of a sum of proved inputs.

    Args:
        offer: Offer of the sum.
        verify_key: Key by which both operators verify.
        arithmetic: Function that returns the engine that computes in the field.
    """

    def __init__(
        self, offer: Offer, verify_key: bytes, arithmetic: Callable[[], Arithmetic]
    ) -> None:
        self._proof = proof_of(offer, arithmetic())
        self._verify_key = verify_key
        self._sum = np.zeros((self._proof.length, 2), dtype=np.uint64)
        self.verifier_bytes = self._proof.verifier_share_bytes

    @override
    def listed(self, reports: Sequence[PhoneReport]) -> list[bytes]:
        received = [Received(each.report_id, each.public, each.share) for each in reports]
        found = self._proof.verifiers(Party.LEADER, self._verify_key, received)
        return [
            each.report_id + each.sealed + each.public + found.shares[i].tobytes()
            if found.sound[i]
            else b""
            for i, each in enumerate(reports)
        ]

    @override
    def check_share(self, share: bytes) -> None:
        if len(share) != self._proof.leader_share_bytes:
            raise MalformedMessageError(f"a share of {len(share)} bytes")

    @override
    def check(self, answer: HelperTotal) -> None:
        field.decode(answer.total, self._proof.length)

    @override
    def add(self, reports: Sequence[PhoneReport], ours: bytes, theirs: bytes) -> bool:
        size = self.verifier_bytes
        received = [Received(each.report_id, each.public, each.share) for each in reports]
        settled = self._proof.settle(
            self._proof.recalled(Party.LEADER, received, ours),
            [theirs[at : at + size] for at in range(0, len(theirs), size)],
        )
        self._sum = self._proof.arithmetic.add(self._sum, settled.total)
        return bool(settled.accepted.all())

    @override
    def total(self, answer: HelperTotal, noise: Totals) -> Totals:
        ours = self._proof.arithmetic.add(self._sum, field.from_signed(noise))
        return self._proof.unshard(field.encode(ours), answer.total)


def half_of(
    offer: Offer, verify_key: bytes, arithmetic: Callable[[], Arithmetic]
) -> PlainHalf | ProvedHalf:
    """Return the leader's half of an offered sum, still empty."""
    if offer.parameters.proof is None:
        return PlainHalf(offer.parameters)
    return ProvedHalf(offer, verify_key, arithmetic)


def check_report(phone: int, report: PhoneReport, offer: Offer) -> None:
    """Refuse a report that the leader cannot list.

    Raises:
        MalformedMessageError: A part has the wrong size, or the leader's share is malformed or does
            not fit the public share.
    """
    due = sizes(offer.parameters)
    for part, given, expected in (
        ("a sealed seed", report.sealed, due.sealed),
        ("a share", report.share, due.share),
        ("a public share", report.public, due.public),
    ):
        if len(given) != expected:
            raise MalformedMessageError(
                f"phone {phone}: {part} of {len(given)} bytes; {expected} are expected"
            )
    if offer.parameters.proof is None:
        encoding.check_packed(report.share, offer.parameters)
        return
    try:
        proof_of(offer).check(Party.LEADER, Received(report.report_id, report.public, report.share))
    except RemoteError as error:
        raise MalformedMessageError(f"phone {phone}: {error}") from error

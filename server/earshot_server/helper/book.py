"""A helper's records of its sums, each with a secret that is erased once used.

A record is permanent, so that no sum is ever offered or answered twice; its offer and its total are
dropped once requests for them are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from earshot_protocol.errors import MalformedMessageError, UnexpectedMessageError
from earshot_protocol.messages import decode_helper_answer
from earshot_protocol.overriding import override
from earshot_protocol.two_operators.messages import Offer, OfferMade
from earshot_protocol.two_operators.refusals import LateListError


class Secret(NamedTuple):
    """Secret of one sum, which is used once.

    Attributes:
        key: Private X25519 key, to whose public key phones seal.
        noise: Noise of this helper, drawn before any list arrives: int64, little-endian.
    """

    key: bytes
    noise: bytes


@dataclass(frozen=True)
class Record:
    """Record of one sum.

    Attributes:
        leader: Identity of its leader.
        request: Digest of the request that was answered with the offer.
        digest: Digest of the offer.
        offered: Time of the offer, in seconds since 1970.
        answer_until: Time after which no list is answered.
        offer: Answer with the offer, encoded; None once it was dropped.
        reports: Digest of the list that was opened; None before.
        answered: Time of the answer to it; None before.
        total: Answer with the total, encoded; None before, and once it was dropped. Empty if too
            few reports of the list opened, so that there is no total.
    """

    leader: bytes
    request: bytes
    digest: bytes
    offered: float
    answer_until: float
    offer: bytes | None
    reports: bytes | None = None
    answered: float | None = None
    total: bytes | None = None

    @property
    def made(self) -> OfferMade:
        """Answer with the offer.

        Raises:
            LateListError: It was dropped, as the sum's time is over.
            MalformedMessageError: The record is damaged.
        """
        if self.offer is None:
            raise LateListError("the time in which this sum is answered is over")
        made = decode_helper_answer(self.offer)
        if not isinstance(made, OfferMade):
            raise MalformedMessageError("the record of an offer holds something else")
        return made

    @property
    def terms(self) -> Offer:
        """Offer that was made; raises the same errors as `made`."""
        return self.made.offer


class TakenError(UnexpectedMessageError):
    """The sum already has its only record, or its only total."""


class Book(Protocol):
    """Records and secrets of a helper's sums, in any number of processes."""

    def offer(self, sum_id: bytes, record: Record, secret: Secret) -> None:
        """Store the record and the secret of a new sum; both are durable when this returns.

        Raises:
            TakenError: The sum has a record.
        """

    def record(self, sum_id: bytes) -> Record | None:
        """Return the record of a sum; None if it was never offered."""

    def secret(self, sum_id: bytes) -> Secret | None:
        """Return the secret of a sum; None if it is gone."""

    def answer(self, sum_id: bytes, reports: bytes, total: bytes, now: float) -> None:
        """Store the only total of a sum, then erase its secret; both are durable afterwards.

        Args:
            sum_id: Identifier of the sum.
            reports: Digest of the list that is answered.
            total: Answer with the total, encoded; empty without a total.
            now: Time in seconds since 1970.

        Raises:
            TakenError: The sum was answered, or its offer was dropped.
        """

    def erase(self, sum_id: bytes) -> None:
        """Erase the secret of a sum, if it exists."""

    def offers_since(self, leader: bytes, moment: float) -> int:
        """Return how many sums were offered to this leader since that time."""


class MemoryBook(Book):
    """In-memory book, for simulations and tests."""

    def __init__(self) -> None:
        self._records: dict[bytes, Record] = {}
        self._secrets: dict[bytes, Secret] = {}

    @override
    def offer(self, sum_id: bytes, record: Record, secret: Secret) -> None:
        if sum_id in self._records:
            raise TakenError(f"sum {sum_id.hex()} has been offered")
        self._secrets[sum_id], self._records[sum_id] = secret, record

    @override
    def record(self, sum_id: bytes) -> Record | None:
        return self._records.get(sum_id)

    @override
    def secret(self, sum_id: bytes) -> Secret | None:
        return self._secrets.get(sum_id)

    @override
    def answer(self, sum_id: bytes, reports: bytes, total: bytes, now: float) -> None:
        record = self._records[sum_id]
        if record.reports is not None:
            raise TakenError(f"sum {sum_id.hex()} has been answered")
        self._records[sum_id] = replace(record, reports=reports, answered=now, total=total)
        self.erase(sum_id)

    @override
    def erase(self, sum_id: bytes) -> None:
        self._secrets.pop(sum_id, None)

    @override
    def offers_since(self, leader: bytes, moment: float) -> int:
        return sum(
            each.leader == leader and each.offered >= moment for each in self._records.values()
        )

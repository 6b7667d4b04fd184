"""The helper: it offers sums and returns one total of each, without I/O except for its book.

It opens one share of every report, sealed to a key that is only for the sum, and answers one list
of reports with their sum and its own noise. A leader learns no phone's input because of that noise,
because there is only one answer, and because the key is erased before the answer is sent (decision
56).
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from earshot_protocol.errors import (
    InvalidParametersError,
    UnexpectedMessageError,
)
from earshot_protocol.messages import decode_helper_answer
from earshot_protocol.prio3 import field
from earshot_protocol.prio3.derivation import Party
from earshot_protocol.prio3.prio3 import Received
from earshot_protocol.privacy.sum_noise import WholeGaussian
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum import encoding
from earshot_protocol.traffic import check_traffic
from earshot_protocol.two_operators import lists, messages
from earshot_protocol.two_operators.messages import (
    ID_BYTES,
    SEED_BYTES,
    VERIFY_KEY_BYTES,
    AddUp,
    HelperTotal,
    MakeOffer,
    Offer,
    OfferMade,
)
from earshot_protocol.two_operators.parameters import USUAL_REPORTS, TwoOperatorParameters
from earshot_protocol.two_operators.proofs import proof_of
from earshot_protocol.two_operators.refusals import (
    AnsweredError,
    EarlyListError,
    LateListError,
    SmallListError,
    TooManyOffersError,
    UnknownLeaderError,
    UnknownSumError,
    UnwantedOfferError,
    WrongListError,
)
from earshot_protocol.two_operators.shares import helper_shares, unseal
from earshot_protocol.wire import Answer, Task, encode
from earshot_server.helper.book import Book, Record, Secret, TakenError
from earshot_server.proofs.engine import fastest

DAY = 86_400.0
_TOGETHER = 512
"""Number of proved reports that are verified together."""
_UNTIL_MORE_OFFERS = 3600.0


@dataclass(frozen=True)
class HelperPolicy:
    """Limits on the sums that a helper offers.

    Attributes:
        leaders: Identities of the leaders that it serves.
        least_reports: Least number of reports in a total.
        least_noise: Least `deviation` of one operator's noise, relative to the largest entry of an
            input.
        largest_window: Longest time in which phones report, in seconds.
        largest_patience: Longest time for which a key is kept after that, in seconds.
        largest_crowd: Most phones that may be invited to one sum, and so most reports to open.
        offers_a_day: Most sums offered to one leader in a day.
        largest_length: Most entries of a vector.
    """

    leaders: frozenset[bytes] = frozenset()
    least_reports: int = USUAL_REPORTS
    least_noise: float = 0.5
    largest_window: float = 31 * DAY
    largest_patience: float = 31 * DAY
    largest_crowd: int = 10**6
    offers_a_day: int = 100
    largest_length: int = 2**20

    def check(self, request: MakeOffer) -> None:
        """Check that a request for an offer is within the limits.

        Raises:
            UnwantedOfferError: It is not; the message names the limit.
        """
        terms = request.parameters
        try:
            terms.check()
            check_traffic(terms)
        except InvalidParametersError as error:
            raise UnwantedOfferError(f"no sum can run under these parameters: {error}") from error
        for what, value, least in (
            ("least", terms.least, self.least_reports),
            ("noise over bound", deviation(terms) / terms.bound, self.least_noise),
        ):
            if not value >= least:
                raise UnwantedOfferError(f"{what}={value:.6g}; at least {least:g} is accepted")
        for what, value, most in (
            ("window", terms.window, self.largest_window),
            ("patience", request.patience, self.largest_patience),
            ("phones", terms.phones, self.largest_crowd),
            ("length", terms.length, self.largest_length),
        ):
            if not value <= most:
                raise UnwantedOfferError(f"{what}={value:.6g}; at most {most:g} is accepted")


def deviation(parameters: TwoOperatorParameters) -> float:
    """Return the standard deviation of one operator's noise; of Laplace noise, its scale."""
    noise = parameters.noise
    return math.sqrt(noise.variance) if isinstance(noise, WholeGaussian) else noise.scale


class Helper:
    """Helper with one identity.

    Args:
        identity: Signing key.
        book: Records and secrets of its sums.
        policy: Limits on the sums that it offers.
        clock: Clock in seconds since 1970.
        random: Source of randomness for its noise; other than the default only in simulations.
    """

    def __init__(
        self,
        identity: Ed25519PrivateKey,
        book: Book,
        policy: HelperPolicy,
        clock: Callable[[], float] = time.time,
        random: RandomBytes = os.urandom,
    ) -> None:
        self._identity = identity
        self._book = book
        self._policy = policy
        self._clock = clock
        self._random = random

    @property
    def identity(self) -> bytes:
        """Identity of this helper, an Ed25519 public key."""
        return self._identity.public_key().public_bytes_raw()

    def answer(self, task: Task) -> Answer:
        """Answer a leader's task.

        Raises:
            HelperRefusalError: The task is refused; `name` is the reason.
            MalformedMessageError: The task is not signed by its leader, or damaged.
            UnexpectedMessageError: It is not a task of a helper.
        """
        if isinstance(task, MakeOffer):
            return self._offer(task)
        if isinstance(task, AddUp):
            return self._total(task)
        raise UnexpectedMessageError(f"{type(task).__name__} is not a task of a helper")

    # ------------------------------------------------------------------------------ offers

    def _offer(self, request: MakeOffer) -> Answer:
        if request.leader not in self._policy.leaders:
            raise UnknownLeaderError(f"leader {request.leader.hex()} is not served here")
        messages.check_signature(
            request.leader, messages.LEADERS_REQUEST, request.body(), request.signature
        )
        digest = hashlib.sha256(request.body()).digest()
        known = self._book.record(request.sum_id)
        if known is None:
            known = self._new_offer(request, digest)
        if known.request != digest:
            raise UnknownSumError(f"sum {request.sum_id.hex()} was offered to another request")
        return known.made

    def _new_offer(self, request: MakeOffer, digest: bytes) -> Record:
        self._policy.check(request)
        now, leader = self._clock(), request.leader
        if self._book.offers_since(leader, now - DAY) >= self._policy.offers_a_day:
            raise TooManyOffersError(
                f"{self._policy.offers_a_day} sums were offered within a day; ask again later",
                _UNTIL_MORE_OFFERS,
            )
        key, terms = X25519PrivateKey.generate(), request.parameters
        closes = now + terms.window
        offer = Offer(
            version=messages.VERSION,
            suite=messages.X25519_AES128,
            sum_id=request.sum_id,
            leader=leader,
            helper=self.identity,
            key=key.public_key().public_bytes_raw(),
            task=request.task,
            parameters=terms,
            opens=now,
            closes=closes,
            answer_until=closes + request.patience,
        )
        signature = messages.sign(self._identity, messages.HELPERS_OFFER, offer.digest())
        made = OfferMade(
            sum_id=request.sum_id,
            offer=offer,
            signature=signature,
            verify_key=b"" if terms.proof is None else os.urandom(VERIFY_KEY_BYTES),
        )
        # Rejection sampling takes a time that depends on its result, so the noise is drawn now,
        # before there is a total from which its timing could reveal it.
        noise = terms.noise.drawn(terms.length, self._random).astype("<i8").tobytes()
        record = Record(leader, digest, offer.digest(), now, offer.answer_until, encode(made))
        try:
            self._book.offer(request.sum_id, record, Secret(key.private_bytes_raw(), noise))
        except TakenError:
            kept = self._book.record(request.sum_id)
            if kept is None:
                raise
            return kept
        return record

    # ------------------------------------------------------------------------------ totals

    def _total(self, task: AddUp) -> Answer:
        record = self._book.record(task.sum_id)
        if record is None:
            raise UnknownSumError(f"sum {task.sum_id.hex()} was never offered")
        body = messages.list_body(task.offer, task.reports)
        messages.check_signature(record.leader, messages.LEADERS_LIST, body, task.signature)
        if task.offer != record.digest:
            raise UnknownSumError("a list for another offer of this sum")
        reports = hashlib.sha256(task.reports).digest()
        if record.reports is not None:
            return self._given(task.sum_id, reports)
        offer = record.terms
        self._check_list(task, offer)
        secret = self._book.secret(task.sum_id)
        if secret is None:
            return self._given(task.sum_id, reports)
        add_up = _added_up if offer.parameters.proof is None else _proved_and_added_up
        try:
            total = add_up(task, record.made, secret)
        except SmallListError:
            # Opening is expensive, so a sum gets one list, even if too few of its reports open.
            self._keep(task.sum_id, reports, b"")
            return self._given(task.sum_id, reports)
        answer = HelperTotal(
            sum_id=task.sum_id,
            offer=task.offer,
            reports=reports,
            refused=total.refused,
            total=total.sum,
            verifiers=total.verifiers,
        )
        signature = messages.sign(self._identity, messages.HELPERS_TOTAL, answer.body())
        answer = msgspec.structs.replace(answer, signature=signature)
        if not self._keep(task.sum_id, reports, encode(answer)):
            return self._given(task.sum_id, reports)
        return answer

    def _keep(self, sum_id: bytes, reports: bytes, total: bytes) -> bool:
        """Store the total of a sum; return False if it already has one."""
        try:
            self._book.answer(sum_id, reports, total, self._clock())
        except TakenError:
            return False
        return True

    def _given(self, sum_id: bytes, reports: bytes) -> Answer:
        """Return the stored total of a sum, perhaps just stored by another process."""
        record = self._book.record(sum_id)
        if record is None or record.reports is None:
            raise LateListError(f"the key of sum {sum_id.hex()} is gone")
        self._book.erase(sum_id)  # once more, in case it was killed in between
        if record.reports != reports:
            raise AnsweredError(f"sum {sum_id.hex()} already had another list, and gets only one")
        if record.total == b"":
            raise SmallListError("too few reports of the list open: this sum gets no total")
        if record.total is None:
            raise LateListError(f"the total of sum {sum_id.hex()} is no longer stored")
        return decode_helper_answer(record.total)

    def _check_list(self, task: AddUp, offer: Offer) -> None:
        """Check a list before any of its reports is opened."""
        terms, now = offer.parameters, self._clock()
        count = lists.count(task.reports, terms)
        if count > terms.phones:
            raise WrongListError(f"{count} reports of {terms.phones} phones")
        # Once all phones have reported, there is no need to wait.
        if now < offer.closes and count < terms.phones:
            raise EarlyListError(
                f"phones may report for {math.ceil(offer.closes - now)} seconds more",
                offer.closes - now,
            )
        if now > offer.answer_until:
            self._book.erase(task.sum_id)
            raise LateListError("the time in which this sum is answered is over")
        if len({entry.report_id for entry in lists.entries(task.reports, terms)}) < count:
            raise WrongListError("the list names a report twice")
        if count < terms.least:
            raise SmallListError(f"{count} reports; at least {terms.least} are needed")


class _Refused:
    """Identifiers of refused reports, as long as enough others remain.

    Args:
        task: Request with the list.
        terms: Parameters of the sum.
    """

    def __init__(self, task: AddUp, terms: TwoOperatorParameters) -> None:
        self.ids = bytearray()
        self._most = (lists.count(task.reports, terms) - terms.least) * ID_BYTES

    def add(self, report_id: bytes) -> None:
        """Refuse one more.

        Raises:
            SmallListError: Fewer remain than a total needs.
        """
        self.ids += report_id
        if len(self.ids) > self._most:
            raise SmallListError("too few reports of the list open")


class _Total(NamedTuple):
    """The helper's half of a sum, encoded, and the reports that are not in it."""

    sum: bytes
    refused: bytes
    verifiers: bytes = b""


def _added_up(task: AddUp, made: OfferMade, secret: Secret) -> _Total:
    """Return the sum of the helper's shares, with its noise.

    Raises:
        SmallListError: Too few reports open.
    """
    terms, key = made.offer.parameters, X25519PrivateKey.from_private_bytes(secret.key)
    refused = _Refused(task, terms)

    def seeds() -> Iterator[bytes]:
        for entry in lists.entries(task.reports, terms):
            seed = unseal(entry.sealed, key, task.offer, entry.report_id)
            if seed is None or len(seed) != SEED_BYTES:
                refused.add(entry.report_id)
            else:
                yield seed

    total = helper_shares(seeds(), terms)
    total += np.frombuffer(secret.noise, dtype="<i8").astype(total.dtype)
    return _Total(encoding.pack(total, terms.modulus_bits), bytes(refused.ids))


def _proved_and_added_up(task: AddUp, made: OfferMade, secret: Secret) -> _Total:
    """Return the sum of the helper's shares of proved inputs, with its noise.

    Raises:
        SmallListError: Too few reports open and have valid proofs.
    """
    key, proof = X25519PrivateKey.from_private_bytes(secret.key), proof_of(made.offer, fastest())
    total = field.from_signed(np.frombuffer(secret.noise, dtype="<i8").astype(np.int64))
    refused, verifiers = _Refused(task, made.offer.parameters), bytearray()
    waiting = lists.entries(task.reports, made.offer.parameters)
    while some := list(islice(waiting, _TOGETHER)):
        received = [
            # A report that does not open gets an empty share, whose proof is invalid.
            Received(
                entry.report_id,
                entry.public,
                unseal(entry.sealed, key, task.offer, entry.report_id, entry.public) or b"",
            )
            for entry in some
        ]
        ours = proof.verifiers(Party.HELPER, made.verify_key, received)
        settled = proof.settle(ours, [entry.verifier for entry in some])
        total = proof.arithmetic.add(total, settled.total)
        verifiers += ours.shares[settled.accepted].tobytes()
        for entry, accepted in zip(some, settled.accepted, strict=True):
            if not accepted:
                refused.add(entry.report_id)
    return _Total(field.encode(total), bytes(refused.ids), bytes(verifiers))

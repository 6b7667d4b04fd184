"""Two real operators in this process, and the noise that each adds to their sums.

A phone's input is the sum of its two shares. So the helper's noise follows from the recorded inputs
of phones, the shares that they send to the leader, and the helper's total; the leader's noise
follows from the result.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_protocol.arrays import Whole
from earshot_protocol.prio3 import field as field128
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum import encoding
from earshot_protocol.secure_sum.interface import Summation
from earshot_protocol.secure_sum.masks import word_type
from earshot_protocol.secure_sum.messages import SumTask
from earshot_protocol.summations import TWO_OPERATORS
from earshot_protocol.two_operators.leader import Leader, LeaderKeys
from earshot_protocol.two_operators.messages import (
    HelperTotal,
    MakeOffer,
    OfferMade,
    PhoneReport,
    SendReport,
)
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.participant import ReportingParticipant
from earshot_protocol.wire import Answer, Task
from earshot_server.helper.book import MemoryBook
from earshot_server.helper.helper import Helper, HelperPolicy
from earshot_server.proofs.engine import fastest
from earshot_simulations.auditing.streams import Noted
from earshot_simulations.auditing.watching import replaced


def _system(number: int) -> RandomBytes:
    return os.urandom


@dataclass(frozen=True)
class AuditedOperators:
    """Operators of sums; without arguments they are the product's, without a fault.

    Attributes:
        book: Type of the helper's book.
        helper: Returns the source of the helper's noise, from the number of the sum.
        leader: Returns the source of the leader's noise, from the same.
    """

    book: Callable[[], MemoryBook] = MemoryBook
    helper: Callable[[int], RandomBytes] = _system
    leader: Callable[[int], RandomBytes] = _system


PRODUCT = AuditedOperators()


@dataclass
class WatchedSum:
    """The record of one sum.

    Attributes:
        parameters: Parameters of the sum.
        inputs: Input of each phone, before it was shared.
        shares: Share that the leader received from each phone.
        offered: Noise that the helper stored with its key when it offered the sum.
        helpers: Total of the helper.
        result: Result of the leader.
        key: Private key of the offer, to whose public key phones seal.
        drawn: Random bytes of the helper's noise, and of the leader's.
    """

    parameters: TwoOperatorParameters
    inputs: list[Whole] = field(default_factory=list)
    shares: list[bytes] = field(default_factory=list)
    offered: Whole = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    helpers: bytes = b""
    result: Whole = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    key: bytes = b""
    drawn: tuple[list[bytes], list[bytes]] = field(default_factory=lambda: ([], []))

    @property
    def both(self) -> Whole:
        """Noise of both operators: the result less the sum of the phones' inputs."""
        return self.result - self._plain

    @property
    def helper(self) -> Whole:
        """Noise in the helper's total."""
        parameters = self.parameters
        if parameters.proof is None:
            words = np.zeros(parameters.length, dtype=word_type(parameters.modulus_bits))
            encoding.add_packed(words, (self.helpers, *self.shares), parameters)
            total = encoding.decode(words, parameters).reshape(-1).astype(np.int64)
            return total - self._plain
        shape, length = parameters.proof, parameters.length
        encoded = shape.squares(length) + shape.bits(length)
        size = field128.ENCODED_BYTES * encoded  # a proof follows
        shares = np.stack([field128.decode(share[:size], encoded) for share in self.shares])
        vectors = shape.decoded(shares, length, fastest())
        values = np.stack([field128.decode(self.helpers, length), *vectors], axis=1)
        return field128.to_signed(fastest().total(values)) - self._plain

    @property
    def leader(self) -> Whole:
        """Noise in the result beyond the helper's."""
        return self.both - self.helper

    @property
    def _plain(self) -> Whole:
        total: Whole = np.sum(self.inputs, axis=0, dtype=np.int64)
        return total


class WatchedOperators:
    """A leader and a helper, with a record of their sums, in order.

    Args:
        operators: Operators, with a fault where one is planted.

    Attributes:
        sums: Records of requested sums, by identifier.
        keys: Keys of the leader.
        helper: Signing key of the helper.
        book: Book of the helper.
        summation: Summation with recorded phones and this leader.
    """

    def __init__(self, operators: AuditedOperators = PRODUCT) -> None:
        leader, self.helper = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
        self.sums: dict[bytes, WatchedSum] = {}
        self.book = operators.book()
        self._operators = operators
        self._begun = 0
        identity = self.helper.public_key().public_bytes_raw()
        helpers, self._helpers = self._source(operators.helper, lambda: len(self.sums))
        leaders, self._leaders = self._source(operators.leader, lambda: self._begun)
        watched = self

        class Counting(LeaderKeys):
            """Leader's keys that count the sums begun with them."""

            def __call__(self, *given: Any, **named: Any) -> Leader:
                """Begin a sum."""
                watched._begun += 1
                return super().__call__(*given, **named)

        self.keys: LeaderKeys = Counting(leader, identity, leaders, fastest)
        policy = HelperPolicy(frozenset({self.keys.identity}), least_reports=2, least_noise=0.0)
        self._helper = Helper(self.helper, self.book, policy, random=helpers)
        sums = self.sums

        class Noting(ReportingParticipant):
            """A phone whose input and share are recorded."""

            def __init__(self, task: SendReport, values: npt.ArrayLike, told: bytes = b"") -> None:
                super().__init__(task, values, told)
                sums[task.sum_id].inputs.append(np.asarray(values, dtype=np.int64).reshape(-1))

            def answer(self, task: SumTask) -> PhoneReport:
                """Return the report."""
                report = super().answer(task)
                sums[task.sum_id].shares.append(report.share)
                return report

        self.summation: Summation = replace(TWO_OPERATORS, participant=Noting, aggregator=self.keys)

    def answer(self, task: Task) -> Answer:
        """Return the helper's answer."""
        if isinstance(task, MakeOffer):
            self.sums[task.sum_id] = WatchedSum(task.parameters)
        given = self._helper.answer(task)
        if isinstance(given, OfferMade):
            secret = self.book.secret(given.sum_id)
            noise = np.frombuffer(secret.noise if secret else b"", dtype="<i8")
            self.sums[given.sum_id].offered = noise.astype(np.int64)
            self.sums[given.sum_id].key = secret.key if secret else b""
        elif isinstance(given, HelperTotal):
            self.sums[given.sum_id].helpers = given.total
        return given

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Record the results of leaders in this process, each as that of the last requested sum."""
        result = Leader.result

        def noted(leader: Leader) -> npt.NDArray[np.int64 | np.float64]:
            total = result(leader)
            self._last.result = total.astype(np.int64).reshape(-1)
            return total

        with replaced(Leader, result=noted):
            yield
        for number, seen in enumerate(self.sums.values()):
            helpers, leaders = (
                each[number].taken() if number in each else []
                for each in (self._helpers, self._leaders)
            )
            # A leader draws the salt of its commitment last; it is not noise.
            seen.drawn = helpers, leaders[:-1]

    @property
    def _last(self) -> WatchedSum:
        return next(reversed(self.sums.values()))

    @staticmethod
    def _source(
        of_sum: Callable[[int], RandomBytes], begun: Callable[[], int]
    ) -> tuple[RandomBytes, dict[int, Noted]]:
        """Return a source that switches to a new one in every sum, and the records of these."""
        sources: dict[int, Noted] = {}

        def random(size: int) -> bytes:
            number = begun() - 1
            if number not in sources:
                sources[number] = Noted(of_sum(number))
            return sources[number](size)

        return random, sources
